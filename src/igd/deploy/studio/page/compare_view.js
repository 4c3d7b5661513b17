// One model or two on labelled images.

import { acting, field, make } from "./elements.js";
import { folderChooser, intake, Sender } from "./image_intake.js";
import { ask, send } from "./server.js";
import { texts } from "./studio_texts.js";

const words = texts.compare;

export async function compareView(about) {
  const heading = make("h2", {}, words.title);
  if (about.role !== "train") return { title: words.title, content: [make("section.panel", {}, heading, make("p", {}, texts.notAllowed("train")))] };
  const { models } = await (await ask("v1/studio/models")).json();
  const names = models.filter((model) => model.can_change).map((model) => model.name);
  const options = () => names.map((name) => make("option", { value: name }, name));
  const first = make("select", { id: "first-model" }, options());
  const second = make("select", { id: "second-model" }, make("option", { value: "" }, words.noSecond), options());
  first.value = about.query.get("model") ?? names[0] ?? "";
  if (!about.query.get("model")) second.value = names.find((name) => name !== first.value) ?? "";
  const sender = new Sender(about);
  const said = make("div");
  const received = make("p.soft", { role: "status" });
  const start = make("button.main", { type: "button", id: "measure", hidden: true }, texts.compare.start);

  const begin = async (where) => {
    const kind = second.value ? { kind: "compare", other: second.value } : { kind: "report" };
    const job = await send("POST", "v1/jobs", { ...kind, model: first.value, ...where });
    location.hash = `#/jobs/${job.id}`;
  };
  start.addEventListener("click", acting(() => begin({ set: sender.setId }), said));
  const onChange = async () => {
    if (!sender.setId) return;
    const { images } = await (await ask(`v1/sets/${sender.setId}`)).json();
    const kept = images.filter((image) => !image.reason);
    const defects = kept.filter((image) => image.label).length;
    received.textContent = words.received(kept.length - defects, defects);
    start.hidden = !defects || defects === kept.length;
  };
  const fromHistory = make("button", { type: "button" });
  const name = () => (fromHistory.textContent = words.history(first.value));
  first.addEventListener("change", name);
  name();
  fromHistory.addEventListener("click", acting(async () => begin({ set: (await send("POST", "v1/sets", { history: first.value, labelled: true })).id }), said));
  return {
    title: words.title,
    content: [
      make("section.panel", {}, heading, make("p.soft", {}, words.intro), make("div.fields", {}, field(words.first, first), field(words.second, second))),
      make(
        "section.panel",
        {},
        make("h2", {}, words.images),
        make("div.row.start", {}, fromHistory),
        make("div.two", {}, intake(about, sender, "good", { drop: words.good }, onChange, "good-files"), intake(about, sender, "defect", { drop: words.defect }, onChange, "defect-files")),
        about.has_data_root ? make("div", {}, make("p.soft.hint", {}, words.folder), folderChooser((folder) => begin({ folder }))) : null,
        received,
        start,
        said,
      ),
    ],
  };
}
