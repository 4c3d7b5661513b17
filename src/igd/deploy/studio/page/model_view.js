// One model: where it came from, what it promises and did, another threshold, files, deletion.

import { acting, button, confirmed, facts, field, link, make } from "./elements.js";
import { folderChooser, intake, Sender } from "./image_intake.js";
import { saving } from "./job_view.js";
import { histogram } from "./pictures.js";
import { ask, send } from "./server.js";
import { dated, megabytes, percent, texts } from "./studio_texts.js";
import { trainingAddress } from "./train_view.js";
import { ratesOf } from "./verdicts.js";

const words = texts.model;
const NAMED = 8; // odd images
const REPORTS = 3; // the newest
const ODD = /far above the rest and raise/; // what the command line says of them, with flags of its own

export async function modelView(about, name) {
  const path = `v1/studio/models/${encodeURIComponent(name)}`;
  const model = await (await ask(path)).json();
  const may = about.role === "train";
  if (!model.info) {
    return { title: name, content: [make("section.panel", {}, make("h2", {}, name), make("p.fault", {}, texts.models.unreadable(model.fault)), may ? removal(path, name) : null)] };
  }
  const jobs = (await (await ask("v1/jobs")).json()).jobs.filter((job) => job.model === name && job.state === "done");
  const training = may ? jobs.find((job) => job.kind === "train") : null;
  const setting = jobs.find((job) => job.kind === "train" || job.kind === "calibrate"); // what set the threshold
  const reports = jobs.filter((job) => job.kind === "report").slice(0, REPORTS);
  return {
    title: name,
    content: [overview(model, training, setting), realised(model, may), files(about, model, path, reports), may && model.can_change ? recalibration(about, model) : null, may ? removal(path, name) : null].filter(Boolean),
  };
}

function overview(model, training, setting) {
  const { info } = model;
  return make(
    "section.panel",
    {},
    make("div.row", {}, make("h2", {}, model.name), link(texts.models.inspect, `#/inspect/${encodeURIComponent(model.name)}`, "a.button.main")),
    model.fault ? make("p.fault", {}, texts.models.replaced(model.fault)) : null,
    model.drift ? make("p.caution", {}, model.drift) : null,
    facts([
      [words.promise, texts.models.promise(model)],
      model.images ? [words.learntFrom, `${texts.models.learnt(model)} ${info.source ?? ""}`] : null,
      [words.calibration, `${info.calibration?.how ?? ""} ${dated(info.calibration?.made_at)}`],
      model.image_size ? [words.size, model.image_size.join("×")] : null,
      info.scales ? [words.method, `${info.recipe}: ${info.scales.join(", ")}; ${info.backbone}`] : null,
      [words.file, `${megabytes(model.bytes)}, ${info.made_by}`],
    ]),
    make("figure", {}, histogram(info.histogram, info.threshold, words.histogram), make("figcaption.soft", {}, words.histogram)),
    info.odd_images?.length ? make("p.caution", {}, `${texts.job.odd(info.odd_images.length)}: ${info.odd_images.slice(0, NAMED).join(", ")} `, setting ? link(words.odd, `#/jobs/${setting.id}`) : null) : null,
    make("ul", {}, (info.warnings ?? []).filter((each) => !ODD.test(each)).map((each) => make("li", {}, each))),
    info.history?.length
      ? make("details", {}, make("summary", {}, `${words.history}: ${info.history.length}`), make("ul", {}, info.history.map((each) => make("li", {}, `${dated(each.made_at)}: ${percent(each.false_alarm_rate)}, ${each.source}`))))
      : null,
    training ? link(words.again, trainingAddress(training)) : null,
  );
}

export function realised({ name, realised: told, can_change: changes }, may) {
  const shown = texts.realised;
  return make(
    "section.panel.realised",
    { "aria-labelledby": "realised-name" },
    make("h2", { id: "realised-name" }, shown.title),
    make("p", {}, told.inspected ? shown.inspected(told.inspected) : shown.none),
    told.inspected
      ? facts([
          [shown.falseAlarms, [told.false_alarms ? shown.rate(told.false_alarms) : shown.noGood, make("span.soft.hint", {}, shown.falseAlarmsHint)]],
          [shown.misses, [told.misses ? shown.rate(told.misses) : shown.nothing, make("span.soft.hint", {}, shown.missesHint)]],
          [shown.promised, percent(told.promised)],
        ])
      : null,
    told.open_alarms ? make("p.soft", {}, shown.open(told.open_alarms)) : null,
    told.too_many ? make("p.caution", {}, shown.tooMany) : null,
    may && changes && told.false_alarms?.count ? link(shown.recalibrate, `#/models/${encodeURIComponent(name)}?to=recalibrate-name`, "a.button") : null,
  );
}

function files(about, model, path, reports) {
  const said = make("div");
  const make_onnx = acting(async () => {
    const job = await send("POST", "v1/jobs", { kind: "export", model: model.name });
    location.hash = `#/jobs/${job.id}`;
  }, said);
  const may = about.role === "train" && model.can_change;
  return make(
    "section.panel",
    {},
    make("h2", {}, words.downloads),
    make(
      "div.row.start",
      {},
      model.can_change ? saving(words.igd, `${path}/igd`, `${model.name}.igd`) : null,
      model.exported ? saving(words.onnx, `${path}/onnx`, `${model.name}.onnx`) : may ? button(words.makeOnnx, make_onnx) : null,
      reports.map((job) => saving(words.reports(dated(job.finished)), `v1/jobs/${job.id}/report`, `${model.name}-report.html`)),
      may ? link(words.report, `#/compare?model=${encodeURIComponent(model.name)}`, "a.button") : null,
    ),
    said,
  );
}

function recalibration(about, model) {
  const sender = new Sender(about);
  const said = make("div");
  const received = make("p.soft", { role: "status" });
  const tooFew = make("p.caution", { role: "status", id: "too-few", hidden: true });
  let kept = 0;
  const warn = () => {
    const fewest = imagesToPromise(Number(rate.value));
    tooFew.hidden = !kept || kept >= fewest;
    tooFew.textContent = words.tooFew(percent(Number(rate.value)), fewest, kept);
  };
  const rates = ratesOf({ ...model.info, calibration_images: model.calibration_images });
  const rate = make("select", { id: "calibrate-rate", onchange: () => warn() }, rates.map((each) => make("option", { value: String(each) }, percent(each))));
  rate.value = String(model.rate);
  const begin = async (set) => {
    const job = await send("POST", "v1/jobs", { kind: "calibrate", model: model.name, set, rate: Number(rate.value) });
    location.hash = `#/jobs/${job.id}`;
  };
  const fromHistory = acting(async () => begin((await send("POST", "v1/sets", { history: model.name })).id), said);
  const start = make("button.main", { type: "button", id: "recalibrate", hidden: true, onclick: acting(() => begin(sender.setId), said) }, words.start);
  const onChange = async () => {
    if (!sender.setId) return;
    const { images } = await (await ask(`v1/sets/${sender.setId}`)).json();
    kept = images.filter((image) => !image.reason).length;
    received.textContent = words.received(kept, images.length - kept);
    start.hidden = !kept;
    warn();
  };
  return make(
    "section.panel",
    { "aria-labelledby": "recalibrate-name" },
    make("h2", { id: "recalibrate-name" }, words.recalibrate),
    make("p.soft", {}, words.recalibrateMeaning),
    make("div.fields", {}, field(texts.train.rate, rate)),
    make("div.row.start", {}, button(words.fromHistory, fromHistory)),
    make("p.soft.hint", {}, words.fromHistoryHint),
    intake(about, sender, "good", texts.train, onChange, "calibrate-files"),
    about.has_data_root ? folderChooser(async (folder) => begin((await send("POST", "v1/sets", { folder })).id)) : null,
    received,
    tooFew,
    start,
    said,
  );
}

// A quarter of the images tells how they look now; the others set the threshold.
function imagesToPromise(rate) {
  return Math.ceil((Math.ceil(1 / rate - 1e-9) - 1) / 0.75);
}

function removal(path, name) {
  const said = make("div");
  const remove = acting(async () => {
    if (!(await confirmed(words.removeAsk(name), words.removeDetail, texts.deleteIt))) return;
    await ask(path, { method: "DELETE" });
    location.hash = "#/models";
  }, said);
  return make("div.row.start", {}, make("button.quiet", { type: "button", onclick: remove }, words.remove), said);
}
