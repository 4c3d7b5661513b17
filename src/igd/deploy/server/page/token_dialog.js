// The question for a token, in a dialog of the page.

const element = (id) => document.getElementById(id);
let asked = null; // one question, however many requests wait for its answer

export function askForToken(fault) {
  asked ??= new Promise((answer) => {
    const dialog = element("token-dialog");
    element("token-fault").textContent = fault;
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    element("token-form").addEventListener(
      "submit",
      (event) => {
        event.preventDefault();
        dialog.close();
        asked = null;
        answer(element("token").value.trim());
      },
      { once: true },
    );
    dialog.showModal();
  });
  return asked;
}
