// The region of interest: drawn on an image, or typed in its pixels.

import { button, field, fill, make } from "./elements.js";
import { picture } from "./pictures.js";
import { texts } from "./studio_texts.js";

const words = texts.roi;
const SIDES = ["x", "y", "width", "height"];

export class RoiField {
  constructor() {
    this.inputs = Object.fromEntries(SIDES.map((side) => [side, make("input", { type: "number", min: side === "x" || side === "y" ? 0 : 1, id: `roi-${side}`, inputmode: "numeric" })]));
    this.frame = make("div.roi-frame");
    this.box = make("div.roi-box", { hidden: true });
    for (const input of Object.values(this.inputs)) input.addEventListener("input", () => this.draw());
    this.element = make(
      "details",
      { id: "roi" },
      make("summary", {}, words.title),
      make("p.soft", {}, words.meaning),
      this.frame,
      make("div.fields", {}, SIDES.map((side) => field(words[side], this.inputs[side]))),
      button(words.clear, () => (this.set(null), this.tell())),
    );
    this.frame.addEventListener("pointerdown", (event) => this.drag(event));
  }

  // The image to draw on; another of the same size changes nothing.
  show(setId, image) {
    if (!image?.width || this.path === `${setId}/${image.number}`) return;
    this.path = `${setId}/${image.number}`;
    this.size = [image.width, image.height];
    this.frame.style.aspectRatio = `${image.width} / ${image.height}`;
    const photo = picture(`v1/sets/${setId}/images/${image.number}/thumbnail`, image.name);
    photo.draggable = false;
    fill(this.frame, photo, this.box);
    this.draw();
  }

  get value() {
    const values = SIDES.map((side) => Number(this.inputs[side].value));
    return this.inputs.width.value && this.inputs.height.value ? values : null;
  }

  set(values) {
    SIDES.forEach((side, number) => (this.inputs[side].value = values ? values[number] : ""));
    this.draw();
  }

  draw() {
    const box = this.value;
    this.box.hidden = !box || !this.size;
    if (this.box.hidden) return;
    const [wide, high] = this.size;
    const shares = { left: box[0] / wide, top: box[1] / high, width: box[2] / wide, height: box[3] / high };
    for (const [side, share] of Object.entries(shares)) this.box.style[side] = `${100 * share}%`;
  }

  drag(down) {
    if (!this.size) return;
    down.preventDefault();
    const place = (event) => {
      const { left, top, width, height } = this.frame.getBoundingClientRect();
      const within = (share, side) => Math.round(Math.min(1, Math.max(0, share)) * side);
      return [within((event.clientX - left) / width, this.size[0]), within((event.clientY - top) / height, this.size[1])];
    };
    const from = place(down);
    const move = (event) => {
      const to = place(event);
      const [x, y] = [0, 1].map((axis) => Math.min(from[axis], to[axis]));
      const [width, height] = [0, 1].map((axis) => Math.abs(from[axis] - to[axis]));
      this.set(width && height ? [x, y, width, height] : null);
    };
    this.frame.setPointerCapture(down.pointerId);
    this.frame.addEventListener("pointermove", move);
    const up = () => {
      this.frame.removeEventListener("pointermove", move);
      this.tell();
    };
    this.frame.addEventListener("pointerup", up, { once: true });
  }

  // As an input does, of which nobody typed anything.
  tell() {
    this.element.dispatchEvent(new Event("change", { bubbles: true }));
  }
}
