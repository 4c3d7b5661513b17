// Elements of the page. Whatever others wrote, such as names and notes, is text here, never markup.

export function make(description, attributes = {}, ...children) {
  const [name, ...classes] = description.split(".");
  const node = document.createElement(name);
  if (classes.length) node.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked") node[key] = value;
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...present(children));
  return node;
}

// In the place of all that a node held; what is null is left out, as everywhere here.
export function fill(node, ...children) {
  node.replaceChildren(...present(children));
}

const present = (children) => children.flat(2).filter((child) => child !== null && child !== undefined && child !== false);

export const button = (text, onclick, kind = "button") => make(kind, { type: "button", onclick }, text);
export const link = (text, href, kind = "a") => make(kind, { href }, text);

// A labelled control; the label is beside it on the screen and in the tree that screen readers read.
export const field = (text, control, hint) =>
  make("label.field", {}, make("span.field-name", {}, text), control, hint ? make("span.soft.hint", {}, hint) : null);

export const facts = (rows) =>
  make("dl.facts", {}, rows.filter(Boolean).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));

export function announce(text) {
  document.getElementById("news").textContent = text;
}

export function confirmed(question, detail, action) {
  const dialog = document.getElementById("confirm-dialog");
  document.getElementById("confirm-question").textContent = question;
  document.getElementById("confirm-detail").textContent = detail;
  const yes = document.getElementById("confirm-yes");
  yes.textContent = action;
  return new Promise((answer) => {
    let agreed = false;
    yes.onclick = () => {
      agreed = true;
      dialog.close();
    };
    document.getElementById("confirm-no").onclick = () => dialog.close();
    dialog.onclose = () => answer(agreed);
    dialog.showModal();
  });
}

export function fault(message) {
  return make("p.fault", { role: "alert" }, message);
}

// Runs an action of a button; what goes wrong is said beside it.
export function acting(action, beside) {
  return async (event) => {
    const pressed = event?.currentTarget;
    if (pressed) pressed.disabled = true;
    beside.replaceChildren();
    try {
      await action(event);
    } catch (error) {
      beside.replaceChildren(fault(error.message));
    } finally {
      if (pressed) pressed.disabled = false;
    }
  };
}
