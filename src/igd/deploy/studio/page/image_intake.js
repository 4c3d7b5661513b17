// Images on their way in: dropped, chosen, or a folder on the studio's machine.

import { acting, button, fault, fill, make } from "./elements.js";
import { ask, send } from "./server.js";
import { texts } from "./studio_texts.js";

const TYPES = "image/png,image/jpeg,image/bmp,image/tiff,image/webp";
const IN_A_REQUEST = 8; // images
const AT_ONCE = 2; // requests

// A place to drop images on, which opens the file dialog too.
export function dropZone(words, onFiles, id) {
  const input = make("input.unseen", { type: "file", accept: TYPES, multiple: true, id });
  input.addEventListener("change", () => {
    onFiles([...input.files]);
    input.value = "";
  });
  const zone = make(
    "label.drop",
    {},
    input,
    make("strong", {}, words.drop),
    make("span.soft", {}, `${words.or ?? texts.train.or} `, make("span.link", {}, words.choose ?? texts.train.choose), words.paste ?? ""),
  );
  for (const kind of ["dragover", "dragleave", "drop"]) {
    zone.addEventListener(kind, async (event) => {
      event.preventDefault();
      zone.classList.toggle("over", kind === "dragover");
      if (kind === "drop") onFiles(await filesOf(event.dataTransfer));
    });
  }
  return zone;
}

export function folderButton(text, onFiles) {
  const input = make("input.unseen", { type: "file", webkitdirectory: true, multiple: true, tabindex: -1, "aria-hidden": "true" });
  input.addEventListener("change", () => {
    onFiles([...input.files].filter((file) => /\.(png|jpe?g|bmp|tiff?|webp)$/i.test(file.name)));
    input.value = "";
  });
  return make("span", {}, input, button(text, () => input.click()));
}

// Files of a drop, those in folders among them, each under its path.
async function filesOf(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) return [...transfer.files];
  const found = [];
  const visit = async (entry) => {
    if (entry.isFile) {
      const file = await new Promise((ready, failed) => entry.file(ready, failed));
      found.push(Object.assign(file, { path: entry.fullPath.replace(/^\//, "") }));
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((ready, failed) => reader.readEntries(ready, failed));
      if (!some.length) return;
      for (const each of some) await visit(each);
    }
  };
  for (const entry of entries) await visit(entry);
  return found;
}

// Sends images to a set; says how many have come, and gives what the studio made of each.
export class Sender {
  constructor(about, setId = null) {
    this.about = about;
    this.setId = setId;
  }

  async set() {
    this.creating ??= this.setId ? Promise.resolve(this.setId) : send("POST", "v1/sets", {}).then((made) => made.id);
    this.setId = await this.creating;
    return this.setId;
  }

  async send(files, label, onProgress) {
    const set = await this.set();
    const waiting = batches(files, this.about);
    let done = 0;
    onProgress(0, files.length);
    const work = async () => {
      while (waiting.length) {
        const some = waiting.shift();
        const form = new FormData();
        for (const file of some) form.append("images", file, file.path || file.webkitRelativePath || file.name);
        await ask(`v1/sets/${set}/images?label=${label}`, { method: "POST", body: form });
        done += some.length;
        onProgress(done, files.length);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }
}

function batches(files, about) {
  const parts = [];
  let part = [];
  let size = 0;
  for (const file of files) {
    if (part.length && (part.length >= IN_A_REQUEST || size + file.size > about.max_bytes / 2)) {
      parts.push(part);
      part = [];
      size = 0;
    }
    part.push(file);
    size += file.size;
  }
  return part.length ? [...parts, part] : parts;
}

// The folders of the studio's machine, one level at a time.
export function folderChooser(onChosen) {
  const list = make("div.folders");
  const said = make("div");
  const open = acting(async (path) => {
    const { folders, images } = await (await ask(`v1/folders?path=${encodeURIComponent(path)}`)).json();
    const below = (name) => (path ? `${path}/${name}` : name);
    fill(list, 
      make("p.path", {}, `/${path}`),
      make(
        "ul",
        {},
        path ? make("li", {}, button(`↑ ${texts.train.up}`, () => open(path.split("/").slice(0, -1).join("/")))) : null,
        folders.map((name) => make("li", {}, button(`${name}/`, () => open(below(name))))),
      ),
      button(texts.train.useFolder(images), acting(() => onChosen(path), said)),
    );
  }, said);
  return make(
    "details.server-folder",
    { ontoggle: (event) => event.target.open && !list.children.length && open("") },
    make("summary", {}, texts.train.onServer),
    list,
    said,
  );
}

// All of these together: where images come from, for one set.
export function intake(about, sender, label, words, onChange, id) {
  const progress = make("p.soft", { role: "status" });
  const said = make("div");
  const take = async (files) => {
    fill(said);
    if (!files.length) return;
    try {
      await sender.send(files, label, (done, total) => {
        progress.textContent = done < total ? texts.train.sending(done, total) : "";
      });
    } catch (error) {
      progress.textContent = "";
      fill(said, fault(error.message));
    }
    await onChange();
  };
  return make("div.intake", {}, dropZone(words, take, id), make("div.row.start", {}, folderButton(texts.train.chooseFolder, take)), progress, said);
}
