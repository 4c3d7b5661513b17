// One image as a card: its picture, anomaly map and boxes, and the verdict in words.

import { isAnomalous, meaningOf, position, wordOf } from "./verdicts.js";

const TINY = 128; // pixels; smaller images are shown as the squares they are made of
const SVG = "http://www.w3.org/2000/svg";

export class Card {
  constructor(file, tryAgain) {
    this.element = document.importNode(document.getElementById("card").content, true).querySelector("article");
    this.find = (selector) => this.element.querySelector(selector);
    this.address = URL.createObjectURL(file);
    this.find(".name").textContent = file.name;
    this.find(".again").addEventListener("click", tryAgain);
    this.find(".opacity input").addEventListener("input", (event) => {
      this.find(".anomaly-map").style.opacity = event.target.value / 100;
    });
    const photo = this.find(".photo");
    photo.addEventListener("load", () => photo.classList.toggle("tiny", Math.max(photo.naturalWidth, photo.naturalHeight) < TINY));
    photo.alt = file.name;
    photo.src = this.address;
    this.displayable = photo.decode().then(() => true, () => false); // browsers know no TIFF; the server shows it then
    this.wait();
  }

  wait() {
    this.become("waiting", "…", "Scoring …");
    this.find(".meaning").textContent = "";
    this.find(".again").hidden = true;
  }

  async show(result, model) {
    this.result = result;
    this.model = model;
    const separate = await this.displayable;
    this.find(".opacity").hidden = !separate;
    const picture = this.find(separate ? ".anomaly-map" : ".photo");
    picture.src = `data:image/png;base64,${result.map}`;
    picture.alt = `${result.name}, ${separate ? "anomaly map" : "with its anomaly map"}`;
    this.find(".picture").style.aspectRatio = `${result.width} / ${result.height}`;
    this.find(".score").textContent = result.score.toFixed(3);
    this.find(".p-value").textContent = result.p_value.toFixed(3);
    this.find(".meaning").textContent = meaningOf(result.p_value, model);
    this.find(".needle").style.left = `${position(result.p_value, model)}%`;
    this.find(".boxes").setAttribute("viewBox", `0 0 ${result.width} ${result.height}`);
  }

  fail(message) {
    this.become("broken", "?", "No verdict");
    this.find(".meaning").textContent = message;
    this.find(".again").hidden = false;
  }

  decide(rate) {
    if (!this.result) return;
    const anomalous = isAnomalous(this.result.p_value, rate, this.model);
    this.become(anomalous ? "anomalous" : "normal", anomalous ? "!" : "✓", wordOf(anomalous));
    this.find(".zone").style.width = `${100 - position(Math.max(rate, this.model.lowest_rate), this.model)}%`;
    const areas = this.result.regions.filter((area) => isAnomalous(area.p_value, rate, this.model));
    this.find(".areas").textContent = areas.length || "none";
    this.find(".boxes").replaceChildren(...areas.flatMap((area) => ["under", "over"].map((kind) => box(area, kind))));
  }

  become(state, sign, word) {
    this.element.className = `card ${state}`;
    this.find(".sign").textContent = sign;
    this.find(".word").textContent = word;
  }

  remove() {
    URL.revokeObjectURL(this.address);
    this.element.remove();
  }
}

function box(area, kind) {
  const rectangle = document.createElementNS(SVG, "rect");
  rectangle.setAttribute("class", kind);
  for (const name of ["x", "y", "width", "height"]) rectangle.setAttribute(name, area[name]);
  return rectangle;
}
