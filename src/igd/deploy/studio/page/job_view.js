// Jobs: how far each is, what came of it, and images to leave out.

import { acting, announce, button, confirmed, fill, link, make } from "./elements.js";
import { mapped, picture } from "./pictures.js";
import { ask, send } from "./server.js";
import { dated, percent, texts, timeLeft } from "./studio_texts.js";
import { trainingAddress } from "./train_view.js";

const words = texts.job;
const EVERY = 700; // milliseconds between two looks

export async function jobsView() {
  const { jobs } = await (await ask("v1/jobs")).json();
  const rows = jobs.map((job) =>
    make(
      "li.job",
      {},
      link(`${words.kind[job.kind]}: ${job.model}`, `#/jobs/${job.id}`),
      make(`span.state.${job.state}`, {}, words.state[job.state]),
      make("span.soft", {}, dated(job.created)),
    ),
  );
  return { title: words.title, content: [make("section.panel", {}, make("h2", {}, words.title), rows.length ? make("ul.jobs", {}, rows) : make("p.soft", {}, words.none))] };
}

export async function jobView(about, number) {
  const path = `v1/jobs/${Number(number)}`;
  const panel = make("section.panel");
  const result = make("div.results");
  let timer = null;
  let last = "";
  const look = async () => {
    const job = await (await ask(path)).json();
    drawState(panel, job, about, look);
    const changed = JSON.stringify([job.state, job.pictures, job.result, job.said]);
    if (changed !== last) {
      last = changed;
      fill(result, ...drawResult(job, about));
      if (job.state !== "running") announce(`${words.kind[job.kind]}: ${words.state[job.state]}`);
    }
    clearTimeout(timer);
    if (job.state === "queued" || job.state === "running") timer = setTimeout(follow, EVERY);
    return job;
  };
  // A studio that is being restarted is asked again until it answers.
  const follow = () => look().catch(() => (timer = setTimeout(follow, 3 * EVERY)));
  const job = await look();
  return { title: `${words.kind[job.kind]}: ${job.model}`, content: [panel, result], close: () => clearTimeout(timer) };
}

function drawState(panel, job, about, look) {
  const key = `${job.state}${job.stop}`;
  if (panel.dataset.key !== key) {
    panel.dataset.key = key;
    const said = make("div");
    const post = (what) => acting(async () => (await ask(`v1/jobs/${job.id}/${what}`, { method: "POST" }), look()), said);
    const remove = acting(async () => {
      if (!(await confirmed(words.removeAsk, words.removeDetail, texts.deleteIt))) return;
      await ask(`v1/jobs/${job.id}`, { method: "DELETE" });
      location.hash = "#/jobs";
    }, said);
    const active = job.state === "queued" || job.state === "running";
    const may = about.role === "train";
    fill(panel, 
      make("h2", {}, `${words.kind[job.kind]}: ${job.model} `, make(`span.state.${job.state}`, {}, job.stop && job.state === "running" ? words.stopping : words.state[job.state])),
      make("p", { id: "job-words" }),
      active ? make("progress", { id: "job-progress", max: 1, "aria-label": words.kind[job.kind] }) : null,
      make("p.soft", { id: "job-left" }),
      job.error ? make("p.fault", { role: "alert" }, job.error) : null,
      said,
      make(
        "div.row.start",
        {},
        may && active && !job.stop ? button(words.stop, post("stop")) : null,
        may && (job.state === "stopped" || job.state === "failed") ? make("button.main", { type: "button", onclick: post("resume") }, words.resume) : null,
        job.state === "done" && ["train", "calibrate"].includes(job.kind) ? link(words.inspect, `#/inspect/${encodeURIComponent(job.model)}`, "a.button.main") : null,
        job.kind !== "compare" && (job.kind !== "train" || job.state === "done") ? link(words.model, `#/models/${encodeURIComponent(job.model)}`, "a.button") : null,
        may && job.kind === "train" ? link(words.images, trainingAddress(job), "a.button") : null,
        may && job.state !== "running" ? make("button.quiet", { type: "button", onclick: remove }, words.remove) : null,
      ),
    );
  }
  const find = (id) => panel.querySelector(`#${id}`);
  const bar = find("job-progress");
  if (bar && job.share !== null) bar.value = job.share;
  find("job-left").textContent = job.state === "running" ? timeLeft(job.seconds_left) : "";
  find("job-words").textContent = wordsOf(job);
}

function wordsOf(job) {
  if (job.state === "queued") return words.ahead(job.ahead);
  if (job.state === "stopped") return words.resumeHint;
  if (job.state === "running") return job.step ? words.step(job.step, job.done, job.total) : words.starting;
  if (job.state !== "done") return "";
  if (job.kind === "train") return words.learnt(job.result);
  if (job.kind === "calibrate") return words.calibrated(job.result);
  if (job.kind === "export") return words.exported(job.result);
  return (job.result.summary ?? [job.result.in_words]).map(words.sentence).join(" ");
}

function drawResult(job, about) {
  const odd = job.pictures.filter((each) => each.odd);
  const others = job.pictures.filter((each) => !each.odd);
  const skipped = job.result?.skipped ?? [];
  return [
    job.state === "done" && job.kind === "report" ? make("section.panel", {}, saving(words.report, `v1/jobs/${job.id}/report`, `${job.model}-report.html`)) : null,
    job.state === "done" && job.kind === "export" ? make("section.panel", {}, saving(words.download, `v1/studio/models/${encodeURIComponent(job.model)}/onnx`, `${job.model}.onnx`)) : null,
    job.state === "done" && job.kind === "compare" ? comparison(job) : null,
    odd.length ? oddPanel(job, odd, about) : null,
    others.length ? make("section.panel", {}, make("h2", {}, words.firstMaps), make("p.soft", {}, job.state === "done" ? words.firstMapsMeaning : words.earlyMapsMeaning), make("div.grid.large", {}, others.map((each) => figure(job, each)))) : null,
    skipped.length ? listPanel(words.skipped, skipped) : null,
    job.said?.length ? listPanel(words.said, job.said) : null,
  ].filter(Boolean);
}

const listPanel = (title, lines) => make("section.panel", {}, make("h2", {}, title), make("ul", {}, lines.map((line) => make("li", {}, line))));

function oddPanel(job, odd, about) {
  const said = make("div");
  const training = job.kind === "train";
  const chosen = new Set(odd.map((each) => each.number));
  const again = make("button.main", { type: "button", id: "without-odd" });
  const name = () => {
    again.textContent = training ? words.trainWithout(chosen.size) : words.calibrateWithout(chosen.size);
    again.disabled = !chosen.size;
  };
  again.addEventListener(
    "click",
    acting(async () => {
      const excluded = [...new Set([...(job.spec.excluded ?? []), ...chosen])];
      const next = await send("POST", "v1/jobs", { ...job.spec, kind: job.kind, model: job.model, excluded, replace: true });
      location.hash = `#/jobs/${next.id}`;
    }, said),
  );
  name();
  const card = (each) => {
    const box = make("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(each.number);
      else chosen.delete(each.number);
      name();
    });
    return make("div.odd", {}, figure(job, each), make("label.check", {}, box, words.leaveOut));
  };
  return make(
    "section.panel.warning",
    {},
    make("h2", {}, words.odd(odd.length)),
    make("p", {}, training ? words.oddMeaning : words.oddMeaningCalibrate),
    make("div.grid.large", {}, odd.map(card)),
    about.role === "train" ? make("div.row.start", {}, again) : null,
    said,
  );
}

function figure(job, each) {
  const photo = (alt) => picture(path("photo"), alt);
  const path = (kind) => `v1/jobs/${job.id}/picture?kind=${kind}&name=${encodeURIComponent(each.name)}`;
  // What a model has learnt it finds normal: the map of an odd image would say that it is not odd.
  const learnt = each.odd && job.kind === "train";
  const shown = learnt ? make("div.picture", {}, photo(each.name)) : mapped({ photo: photo(""), layer: picture(path("layer"), ""), alt: texts.mapOf(each.name) });
  return make("figure", {}, shown, make("figcaption", {}, each.name));
}

function comparison(job) {
  const { figures } = texts.compare;
  const cell = (name, value) => (value === null || value === undefined ? "–" : name === "promised_false_alarm_rate" ? percent(value) : name === "image_auroc" ? value.toFixed(3) : String(value));
  return make(
    "section.panel",
    {},
    make(
      "div.scroll",
      { tabindex: 0, role: "region", "aria-label": texts.compare.caption },
      make(
        "table",
        {},
        make("caption.unseen", {}, texts.compare.caption),
        make("thead", {}, make("tr", {}, make("th", {}, ""), make("th.number", { scope: "col" }, job.model), make("th.number", { scope: "col" }, job.spec.other))),
        make(
          "tbody",
          {},
          Object.entries(figures).map(([name, text]) =>
            make("tr", {}, make("th", { scope: "row" }, text), ...["first", "second"].map((which) => make("td.number", {}, cell(name, job.result[which][name])))),
          ),
        ),
      ),
    ),
    make("p", {}, texts.compare.differing(job.result.differing_count)),
    make("ul", {}, job.result.differing.map((each) => make("li", {}, `${each.path}: ${texts.truth[each.label ? "defect" : "good"]}`))),
  );
}

// A file behind a token: fetched, then saved under its name.
export function saving(text, path, name) {
  const said = make("div");
  const save = acting(async () => {
    const address = URL.createObjectURL(await (await ask(path)).blob());
    make("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }, said);
  return make("span.saving", {}, button(text, save), said);
}
