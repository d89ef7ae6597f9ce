// @ts-check
/** Shows the OpenAPI description of this device as a page. */

import { byId, el } from "./dashboard/dom.js";

/** @typedef {{ $ref?: string, type?: string, format?: string, title?: string, description?: string, anyOf?: Schema[], items?: Schema, properties?: Record<string, Schema>, enum?: unknown[], default?: unknown }} Schema */
/** @typedef {{ name: string, in: string, required?: boolean, description?: string, schema?: Schema }} Parameter */
/** @typedef {{ tags?: string[], summary?: string, description?: string, parameters?: Parameter[], requestBody?: { content: Record<string, { schema?: Schema }> }, responses: Record<string, { description: string, content?: Record<string, { schema?: Schema }> }> }} Operation */

/**
 * A schema in a few words: `string`, `[Moment]`, `integer or null`.
 * @param {Schema | undefined} schema
 * @returns {string}
 */
function words(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop() ?? "";
  if (schema.anyOf) return schema.anyOf.map(words).join(" or ");
  if (schema.enum) return schema.enum.join(", ");
  if (schema.type === "array") return `[${words(schema.items)}]`;
  return [schema.type, schema.format && `(${schema.format})`].filter(Boolean).join(" ");
}

/** @param {string[]} head @param {(string | Node)[][]} rows */
function table(head, rows) {
  return el("table", {}, el("thead", {}, el("tr", {}, ...head.map((one) => el("th", { scope: "col" }, one)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((one) => el("td", {}, one))))));
}

/** @param {string} method @param {string} path @param {Operation} operation */
function show(method, path, operation) {
  const parameters = operation.parameters ?? [];
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
  return el("details", {},
    el("summary", {}, el("span", { class: "method" }, method.toUpperCase()), el("code", {}, path), el("span", { class: "dim" }, ` ${(operation.description ?? operation.summary ?? "").split("\n")[0]}`)),
    parameters.length ? table(["Parameter", "In", "Type", ""], parameters.map((one) => [
      el("code", {}, `${one.name}${one.required ? " *" : ""}`), one.in, words(one.schema), one.description ?? one.schema?.description ?? ""])) : null,
    body ? el("p", {}, "Body: ", el("code", {}, words(body))) : null,
    table(["Answer", "Form", ""], Object.entries(operation.responses).map(([status, one]) => {
      const [type, content] = Object.entries(one.content ?? {})[0] ?? ["", {}];
      return [status, el("code", {}, words(/** @type {{ schema?: Schema }} */ (content).schema) || type), one.description];
    })));
}

const description = await (await fetch("/api/openapi.json")).json();
byId("about", HTMLParagraphElement).textContent = description.info.description;
/** @type {Map<string, HTMLElement[]>} */
const groups = new Map();
for (const [path, methods] of Object.entries(description.paths)) {
  for (const [method, operation] of Object.entries(/** @type {Record<string, Operation>} */ (methods))) {
    const tag = operation.tags?.[0] ?? "other";
    groups.set(tag, [...(groups.get(tag) ?? []), show(method, path, operation)]);
  }
}
const schemas = Object.entries(/** @type {Record<string, Schema>} */ (description.components?.schemas ?? {})).map(([name, schema]) =>
  el("details", {}, el("summary", {}, el("code", {}, name), el("span", { class: "dim" }, ` ${(schema.description ?? "").split("\n")[0]}`)),
    table(["Member", "Type", ""], Object.entries(schema.properties ?? {}).map(([member, one]) => [el("code", {}, member), words(one), one.description ?? ""]))));
groups.set("forms", schemas);
byId("groups", HTMLUListElement).replaceChildren(...[...groups.keys()].map((tag) => el("li", {}, el("a", { href: `#${tag}` }, tag))));
byId("operations", HTMLDivElement).replaceChildren(...[...groups].map(([tag, shown]) =>
  el("section", { "aria-labelledby": tag }, el("h2", { id: tag }, tag), ...shown)));
