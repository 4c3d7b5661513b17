// Inspecting: images in, verdicts out; what a person says of each goes beside it.

import { openCamera } from "./camera.js";
import { announce, button, facts, field, fill, link, make } from "./elements.js";
import { dropZone, folderButton } from "./image_intake.js";
import { mapped, opacityControl } from "./pictures.js";
import { ask } from "./server.js";
import { percent, texts } from "./studio_texts.js";
import { kindOf, truthButtons, verdictLine } from "./verdict_view.js";
import { ratesOf } from "./verdicts.js";

const words = texts.inspect;
const MOST_CARDS = 24; // the history has the others
const AT_ONCE = 4; // requests; images that arrive together are scored together
const LIVE = 12; // verdicts of the live camera that are shown

export async function inspectView(about, name) {
  const { models } = await (await ask("v1/models")).json();
  const title = words.title;
  if (about.role === "view") return { title, content: [make("section.panel", {}, make("h2", {}, title), make("p", {}, texts.notAllowed("inspect")))] };
  if (!models.length) return { title, content: [make("section.panel", {}, make("h2", {}, title), make("p", {}, words.noModel), link(texts.models.first, "#/train", "a.button.main"))] };
  const model = name ? models.find((each) => each.name === name) : models[0];
  if (!model) throw new Error(words.gone(name));
  const bench = new Bench(about, model);
  const choice = make("select", { id: "model" }, models.map((each) => make("option", { value: each.name }, each.name)));
  choice.value = model.name;
  choice.addEventListener("change", () => (location.hash = `#/inspect/${encodeURIComponent(choice.value)}`));
  const rate = make("select", { id: "inspect-rate" }, ratesOf(model).map((each) => make("option", { value: String(each) }, percent(each))));
  rate.value = String(model.max_false_alarms);
  rate.addEventListener("change", () => (bench.rate = Number(rate.value)));
  const onpaste = (event) => bench.add([...(event.clipboardData?.files ?? [])]);
  document.addEventListener("paste", onpaste);
  const camera = button(words.camera, () => openCamera((file) => bench.add([file]), (file) => bench.live(file)));
  camera.id = "camera";
  camera.hidden = !navigator.mediaDevices?.getUserMedia;
  return {
    title: `${title}: ${model.name}`,
    content: [
      make(
        "section.panel",
        { "aria-labelledby": "inspect-name" },
        make("h2", { id: "inspect-name" }, title),
        make("div.fields", {}, field(words.model, choice), field(words.rate, rate)),
        model.drift ? make("p.caution", {}, model.drift) : null,
        dropZone(words, (files) => bench.add(files), "files"),
        make("div.row.start", {}, folderButton(words.folder, (files) => bench.add(files)), camera),
        make("p.soft.hint", {}, words.kept(about.verdicts_kept, about.images_kept)),
      ),
      bench.summary,
      bench.cards,
    ],
    close: () => {
      document.removeEventListener("paste", onpaste);
      document.getElementById("camera-dialog").close();
      bench.closed = true;
    },
  };
}

class Bench {
  constructor(about, model) {
    this.about = about;
    this.model = model;
    this.rate = model.max_false_alarms;
    this.waiting = [];
    this.asking = this.alarms = this.total = 0;
    this.summary = make("p", { id: "summary", role: "status", "aria-live": "polite" });
    this.cards = make("section.cards", { id: "cards", "aria-label": texts.history.title });
  }

  add(files) {
    for (const file of files) {
      const card = make("article.card.waiting");
      this.cards.prepend(card);
      this.waiting.push({ file, card });
      this.wait(file, card);
    }
    while (this.cards.children.length > MOST_CARDS) {
      const last = this.cards.lastElementChild;
      if (last.classList.contains("waiting")) break;
      last.remove();
    }
    this.next();
  }

  wait(file, card) {
    card.className = "card waiting";
    fill(card, make("div.words", {}, make("p.verdict", {}, words.scoring), make("p.name", {}, file.name)));
  }

  async next() {
    if (this.closed || this.asking >= AT_ONCE || !this.waiting.length) return;
    const { file, card } = this.waiting.shift();
    this.asking += 1;
    this.next();
    try {
      const { result, calibrationImages } = await this.score(file, "all");
      this.total += 1;
      this.alarms += result.is_anomalous;
      this.show(card, file, result, calibrationImages);
      this.summary.textContent = words.summary(this.alarms, this.total);
      announce(words.news(file.name, texts.outcome[result.outcome].word));
    } catch (error) {
      this.fail(card, file, error.message);
    } finally {
      this.asking -= 1;
      this.next();
    }
  }

  async score(file, keep) {
    if (file.size > this.about.max_bytes) throw new Error(words.tooLarge(file.size, this.about.max_bytes));
    const form = new FormData();
    form.append("images", file, file.path || file.webkitRelativePath || file.name);
    const query = `keep=${keep}&max_false_alarms=${this.rate}`;
    const answer = await (await ask(`v1/models/${encodeURIComponent(this.model.name)}/inspect?${query}`, { method: "POST", body: form })).json();
    return { result: answer.images[0], calibrationImages: answer.calibration_images };
  }

  show(card, file, result, calibrationImages) {
    const told = texts.outcome[result.outcome];
    const layer = make("img", { alt: "" });
    layer.src = `data:image/png;base64,${result.map}`;
    card.className = `card ${kindOf(result.outcome)}`;
    fill(card, 
      mapped({ photo: photoOf(file, result.id), layer, alt: texts.mapOf(file.name), ...result }),
      make(
        "div.words",
        {},
        verdictLine(result.outcome),
        make("p.name", {}, file.name),
        told.meaning ? make("p.meaning", {}, told.meaning) : null,
        result.remarks.map((remark) => make("p.caution", {}, texts.remark(remark))),
        make("p.meaning.soft", {}, texts.pMeaning(result.p_value, calibrationImages)),
        facts([
          [texts.score, result.score.toFixed(3)],
          [texts.pValue, result.p_value.toFixed(3)],
          [texts.verdict.areas, result.regions.length || texts.verdict.none],
        ]),
        opacityControl(texts.map, layer),
        truthButtons(this.about, { ...result, name: file.name, note: "" }),
        link(words.open, `#/verdicts/${result.id}`),
      ),
    );
  }

  fail(card, file, message) {
    card.className = "card broken";
    const again = () => {
      this.wait(file, card);
      this.waiting.push({ file, card });
      this.next();
    };
    const plain = message.startsWith(`${file.name}: `) ? message.slice(file.name.length + 2) : message;
    fill(card, 
      make("div.words", {}, make("p.verdict", {}, make("span.sign", { "aria-hidden": "true" }, "?"), make("span.word", {}, words.noVerdict)), make("p.name", {}, file.name), make("p.meaning", {}, `${plain[0].toUpperCase()}${plain.slice(1)}`), button(words.again, again, "button.again")),
    );
    announce(words.news(file.name, words.noVerdict));
  }

  // Alarms go into the history; the rest would soon fill it.
  async live(file) {
    const { result } = await this.score(file, "alarms");
    const list = document.getElementById("live-verdicts");
    const told = texts.outcome[result.outcome];
    list.hidden = false;
    list.prepend(make(`li.${kindOf(result.outcome)}`, {}, make("span.sign", { "aria-hidden": "true" }, told.sign), `${told.word}, ${texts.pValue} ${result.p_value.toFixed(3)}`, result.id ? link(words.open, `#/verdicts/${result.id}`) : null));
    while (list.children.length > LIVE) list.lastElementChild.remove();
  }
}

// The file itself where the browser can show it, else what the studio made of it.
function photoOf(file, id) {
  const photo = make("img", { alt: "" });
  const address = URL.createObjectURL(file);
  photo.onload = () => URL.revokeObjectURL(address);
  photo.onerror = async () => {
    URL.revokeObjectURL(address);
    photo.onerror = null;
    photo.onload = null;
    photo.src = URL.createObjectURL(await (await ask(`v1/verdicts/${id}/thumbnail`)).blob());
  };
  photo.src = address;
  return photo;
}
