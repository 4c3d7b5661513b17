// The API's own description, openapi.json, as a page. All of it is set as text.

const METHODS = ["get", "post", "put", "patch", "delete"];

function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function ofClass(made, name) {
  made.className = name;
  return made;
}

function inWords(text) { // what stands between backticks is code
  return text.split("`").map((part, number) => (number % 2 ? element("code", part) : part));
}

function schemaName(schema) {
  return schema?.$ref?.split("/").pop();
}

function typeOf(schema = {}) {
  const named = schemaName(schema);
  if (named) return named;
  const among = schema.anyOf ?? schema.oneOf;
  if (among) return among.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  return schema.format === "binary" ? "file" : schema.type ?? "anything";
}

function fields(rows) {
  const list = ofClass(element("dl"), "fields");
  for (const [name, type, words] of rows) {
    list.append(element("dt", "", element("code", name)), element("dd", [type, words].filter(Boolean).join(": ")));
  }
  return list;
}

function example(method, path, operation, base) {
  const headers = operation.security ? ' -H "Authorization: Bearer $IGD_TOKEN"' : "";
  const body = operation.requestBody ? " --data-binary @image.png" : "";
  const filled = path.replace("{name}", "MODEL");
  return `curl${method === "get" ? "" : ` -X ${method.toUpperCase()}`}${headers}${body} '${base}${filled}'`;
}

function route(path, method, operation, base) {
  const made = ofClass(element("section"), "route");
  made.id = `${method}-${path}`.replace(/[^a-z0-9]+/gi, "-");
  const heading = element("h2", "", ofClass(element("span", method.toUpperCase()), "method"), element("code", path));
  made.append(heading, element("p", operation.summary));
  if (operation.description) made.append(ofClass(element("p", "", ...inWords(operation.description)), "soft"));
  const parameters = operation.parameters ?? [];
  if (parameters.length) {
    made.append(element("h3", "Parameters"));
    const told = (each) => `${typeOf(each.schema)}${each.required ? "" : ", optional"}`;
    made.append(fields(parameters.map((each) => [each.name, `${each.in}, ${told(each)}`, each.description])));
  }
  if (operation.requestBody) {
    made.append(element("h3", "Body"));
    const content = Object.entries(operation.requestBody.content);
    made.append(fields(content.map(([kind, each]) => {
      const named = Object.entries(each.schema?.properties ?? {}).map(([name, inner]) => `${name}, a ${typeOf(inner)}`);
      return [kind, named.join("; ") || typeOf(each.schema), ""];
    })));
  }
  made.append(element("h3", "Answers"));
  made.append(fields(Object.entries(operation.responses).map(([status, answer]) => {
    const kinds = Object.entries(answer.content ?? {}).map(([kind, each]) => `${kind} (${typeOf(each.schema)})`);
    return [status, answer.description, kinds.join(", ")];
  })));
  made.append(element("h3", "Try it"), element("pre", "", element("code", example(method, path, operation, base))));
  return made;
}

function schema(name, described) {
  const made = ofClass(element("section"), "schema");
  made.id = name;
  made.append(element("h3", name));
  if (described.description) made.append(element("p", described.description));
  made.append(fields(Object.entries(described.properties ?? {}).map(([field, each]) => [field, typeOf(each), each.description])));
  return made;
}

async function show() {
  const about = document.querySelector("#about");
  const answer = await fetch("openapi.json");
  if (!answer.ok) {
    about.textContent = `The server says ${answer.status}.`;
    return;
  }
  const api = await answer.json();
  const base = new URL(".", document.baseURI).href.replace(/\/$/, "");
  const contents = document.querySelector("#contents");
  const routes = document.querySelector("#routes");
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((each) => each in methods)) {
      const made = route(path, method, methods[method], base);
      routes.append(made);
      const link = element("a", `${method.toUpperCase()} ${path}: ${methods[method].summary ?? ""}`);
      link.href = `#${made.id}`;
      contents.append(link);
    }
  }
  const schemas = document.querySelector("#schemas");
  for (const [name, described] of Object.entries(api.components?.schemas ?? {})) schemas.append(schema(name, described));
  about.textContent = `${api.info.summary ?? ""} Version ${api.info.version}.`;
}

show().catch((error) => {
  document.querySelector("#about").textContent = `The description can't be read: ${error.message}`;
});
