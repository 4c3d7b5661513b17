// Every text that is shown, with its contrast to what lies behind it and the least that it may have.
const parts = (colour) => {
  const numbers = colour.match(/[\d.]+/g).map(Number);
  const most = colour.startsWith("color(") ? 255 : 1;
  return [...numbers.slice(0, 3).map((each) => each * most), numbers[3] ?? 1];
};
const over = (top, under) => [...[0, 1, 2].map((at) => top[at] * top[3] + under[at] * (1 - top[3])), 1];
const ancestors = (node) => (node ? [node, ...ancestors(node.parentElement)] : []);
const behind = (node) => ancestors(node).reverse().map((each) => parts(getComputedStyle(each).backgroundColor)).reduce((under, top) => over(top, under), [255, 255, 255, 1]);
const luminance = (colour) => {
  const [red, green, blue] = colour.map((each) => (each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const measured = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim();
  const node = walker.currentNode.parentElement;
  if (!text || !node.checkVisibility() || node.closest("[disabled], .unseen, .skip, script, style")) continue;
  const style = getComputedStyle(node);
  const colour = parts(style.color);
  for (const each of ancestors(node)) colour[3] *= Number(getComputedStyle(each).opacity);
  const under = behind(node);
  const [low, high] = [luminance(over(colour, under)), luminance(under)].sort((a, b) => a - b);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  measured.push({ text, ratio: (high + 0.05) / (low + 0.05), least: large ? 3 : 4.5 });
}
return measured;
