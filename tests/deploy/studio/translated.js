
// Appended to studio_texts.js: every text is written between marks, and what is shown without them is found.
const marked = (text) => (/\p{L}/u.test(text) ? `«${text}»` : text);
const translate = (told) => {
  for (const [name, value] of Object.entries(told)) {
    if (Array.isArray(value)) value.forEach((row, at) => (value[at] = [row[0], marked(row[1])])); // of a list of choices
    else if (typeof value === "object") translate(value);
    else if (typeof value === "string") told[name] = marked(value);
    else
      told[name] = (...given) => {
        const made = value.apply(told, given);
        if (typeof made === "object") return Object.fromEntries(Object.entries(made).map(([key, text]) => [key, marked(text)]));
        return marked(made);
      };
  }
};
translate(texts);
window.untranslated = () => {
  const shown = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) shown.push(walker.currentNode.textContent);
  for (const node of document.querySelectorAll("[aria-label], [title], [alt], [placeholder]")) {
    shown.push(...["aria-label", "title", "alt", "placeholder"].map((name) => node.getAttribute(name) ?? ""));
  }
  const rest = shown.map((text) => text.replace(/«[^«]*?»/gsu, "").replace(/^[\s\p{P}]+|[\s\p{P}]+$/gu, ""));
  return rest.filter((text) => /\p{L}/u.test(text));
};
