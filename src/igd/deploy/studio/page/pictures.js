// Pictures that the server sends, which may need a token; and an image with its anomaly map over it.

import { make } from "./elements.js";
import { ask } from "./server.js";

const SVG = "http://www.w3.org/2000/svg";
const near = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      load(target);
    }
  },
  { rootMargin: "200px" },
);

// Fetched when it comes near the screen.
export function picture(path, alt, kind = "img") {
  const image = make(kind, { alt, "data-path": path });
  near.observe(image);
  return image;
}

async function load(image) {
  try {
    const content = await (await ask(image.dataset.path)).blob();
    const address = URL.createObjectURL(content);
    image.onload = image.onerror = () => URL.revokeObjectURL(address);
    image.src = address;
  } catch {
    image.classList.add("lost");
  }
}

// An image, its map and boxes around what deviates.
export function mapped({ photo, layer, alt, width, height, regions = [] }) {
  const holder = make("div.picture", {}, photo, layer, width ? boxes(width, height, regions) : null);
  photo.classList.add("photo");
  photo.alt = alt;
  layer.classList.add("anomaly-map");
  layer.alt = "";
  if (width) holder.style.aspectRatio = `${width} / ${height}`;
  return holder;
}

export function opacityControl(name, layer) {
  const slider = make("input", { type: "range", min: 0, max: 100, value: 60 });
  slider.addEventListener("input", () => (layer.style.opacity = slider.value / 100));
  return make("label.opacity", {}, `${name} `, slider);
}

function boxes(width, height, regions) {
  const drawn = document.createElementNS(SVG, "svg");
  drawn.setAttribute("class", "boxes");
  drawn.setAttribute("aria-hidden", "true");
  drawn.setAttribute("viewBox", `0 0 ${width} ${height}`);
  for (const region of regions) {
    for (const kind of ["under", "over"]) {
      const box = document.createElementNS(SVG, "rect");
      box.setAttribute("class", kind);
      for (const side of ["x", "y", "width", "height"]) box.setAttribute(side, region[side]);
      drawn.append(box);
    }
  }
  return drawn;
}

// A bar for each count, and a line at the threshold.
export function histogram({ low, high, counts }, threshold, label) {
  const drawn = document.createElementNS(SVG, "svg");
  const most = Math.max(...counts, 1);
  drawn.setAttribute("class", "histogram");
  drawn.setAttribute("viewBox", "0 0 400 80");
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", label);
  const part = (name, values) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(values)) node.setAttribute(key, value);
    drawn.append(node);
  };
  counts.forEach((count, number) => {
    const tall = (72 * count) / most;
    const wide = 400 / counts.length;
    part("rect", { class: "count", x: number * wide + 0.5, y: 76 - tall, width: wide - 1, height: tall });
  });
  const at = (400 * (threshold - low)) / (high - low || 1);
  part("line", { class: "limit", x1: Math.min(at, 399), x2: Math.min(at, 399), y1: 0, y2: 80 });
  return drawn;
}
