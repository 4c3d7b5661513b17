// What the page asks of the server. A refusal is an Error whose message says why and what to do.

const PATIENCE = 20; // times to send again while the server is busy
const KEPT = "igd-token"; // in this tab alone, until it is closed
// What is said here; a page may have words of its own.
export const words = {
  noAnswer: "The server did not answer. Is it still running?",
  wrongToken: "This is not the right token.",
  status: (code) => `the server says ${code}`,
};
let token = sessionStorage.getItem(KEPT) ?? "";
let askForToken = async () => "";

export function onTokenNeeded(ask) {
  askForToken = ask;
}

export async function models() {
  return (await ask("v1/models")).json();
}

export async function score(model, file, map) {
  const form = new FormData();
  form.append("images", file, file.name);
  const answer = await ask(`v1/models/${encodeURIComponent(model)}/score?map=${map}`, { method: "POST", body: form });
  return { ...(await answer.json()).images[0], name: file.name }; // forms write some signs of a name differently
}

// A JSON body, and a JSON answer.
export async function send(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  return (await ask(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) })).json();
}

export async function ask(path, options = {}, refusals = 0) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) } });
  } catch {
    throw new Error(words.noAnswer);
  }
  if (answer.ok) return answer;
  if (answer.status === 401) {
    token = await askForToken(token ? words.wrongToken : "");
    sessionStorage.setItem(KEPT, token);
    return ask(path, options, refusals);
  }
  if ((answer.status === 429 || answer.status === 503) && refusals < PATIENCE) {
    const seconds = Number(answer.headers.get("Retry-After")) || 1;
    await new Promise((resume) => setTimeout(resume, 1000 * seconds));
    return ask(path, options, refusals + 1);
  }
  const detail = await answer.json().then((body) => body.detail, () => words.status(answer.status));
  throw new Error(detail);
}
