// From documents to a tree: what is shown, and where. Pure functions; nothing is drawn here.

import { tryable } from "./bodies.js";
import { resolved } from "./sample.js";

const METHODS = ["get", "post", "put", "patch", "delete", "head", "options", "trace"];

/**
 * Give the entries of an OpenAPI document, the sockets of an AsyncAPI document, and where their
 * files are, when the site says so. Every entry: id, method, url, folders, summary, description,
 * deprecated, since and sunset (days as text, or empty), kind (`operation`, `stream`, `socket`, or `broken` for a file that failed to load and
 * so is in no document), file.
 */
export function entriesOf(openapi, asyncapi, site) {
  const files = new Map((site?.files ?? []).map((file) => [`${file.method} ${file.url}`, file.file]));
  const documented = [...operations(openapi), ...sockets(asyncapi)];
  const entries = [...documented, ...brokenOnes(site, documented)];
  for (const entry of entries) {
    entry.id = `${entry.method} ${entry.url}`;
    entry.file = files.get(entry.id) ?? null;
    const path = entry.file ?? `${entry.url}/x`;
    entry.folders = path.split("/").filter(Boolean).slice(0, -1);
  }
  return entries;
}

function operations(openapi) {
  const found = [];
  for (const [url, item] of Object.entries(openapi.paths ?? {})) {
    for (const method of METHODS) {
      const operation = item?.[method];
      if (!operation) continue;
      const said = worded(operation);
      found.push({
        ...said,
        // What stands in place of a summary is on the page already.
        summary: said.summary === `${method.toUpperCase()} ${url}` ? "" : said.summary,
        method: method.toUpperCase(),
        url,
        kind: isStream(method, operation) ? "stream" : "operation",
        parameters: [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(parameter),
        messages: [{ action: "send", type: "text/event-stream", schema: operation["x-event-stream"]?.data }],
        schemas: openapi.components?.schemas ?? {},
      });
    }
  }
  return found;
}

function parameter({ name, in: place, schema, required, description }) {
  return { name, place, schema: schema ?? {}, required: required === true, description: description ?? "" };
}

/** Routes whose file failed to load, of the versions that the document shows. */
function brokenOnes(site, documented) {
  const known = new Set(documented.map((entry) => `${entry.method} ${entry.url}`));
  const versions = new Set(documented.map((entry) => entry.url.split("/")[1]));
  const failed = new Set((site?.broken ?? []).map((file) => file.file));
  return (site?.files ?? [])
    .filter(({ method, url, file }) => failed.has(file) && !known.has(`${method} ${url}`))
    .filter(({ url }) => versions.size === 0 || versions.has(url.split("/")[1]))
    .map(({ method, url }) => ({ ...worded({}), method, url, kind: "broken", parameters: [], messages: [], schemas: {} }));
}

function worded(said) {
  const { summary, description, title } = said;
  return { summary: summary ?? title ?? "", description: description ?? "", ...endOf(said) };
}

/** Give what a route, or the info of a version, says of its end: a channel may not say `deprecated`. */
export function endOf(said) {
  const text = (value) => (typeof value === "string" ? value : "");
  const { since, link, successor } = said?.["x-deprecation"] ?? {};
  return {
    deprecated: said?.deprecated === true || said?.["x-deprecated"] === true,
    since: text(since),
    sunset: text(said?.["x-sunset"]),
    link: text(link),
    successor: text(successor),
  };
}

/** Give the days of an end, to follow a word: " since 2026-11-01, sunset 2027-06-30". */
export function daysOf({ since, sunset }) {
  return (since ? ` since ${since}` : "") + (sunset ? `, sunset ${sunset}` : "");
}

function isStream(method, operation) {
  return (
    method === "get" &&
    Object.values(operation.responses ?? {}).some((answer) => answer?.content?.["text/event-stream"])
  );
}

/** The channels of an AsyncAPI 3 document, without those that plain HTTP serves: event streams. */
function sockets(asyncapi) {
  const overHttp = new Set(
    Object.values(asyncapi?.operations ?? {})
      .filter((operation) => operation?.bindings?.http)
      .map((operation) => operation.channel?.$ref),
  );
  const found = [];
  for (const [name, channel] of Object.entries(asyncapi?.channels ?? {})) {
    const url = channel?.address;
    const isPath = typeof url === "string" && url.startsWith("/");
    if (!isPath || overHttp.has(`#/channels/${name}`)) continue;
    found.push({
      ...worded(channel),
      method: "WEBSOCKET",
      url,
      kind: "socket",
      parameters: queryOf(channel),
      messages: messagesOf(asyncapi, name, channel),
      schemas: asyncapi.components?.schemas ?? {},
    });
  }
  return found;
}

function queryOf(channel) {
  const { properties = {}, required = [] } = channel.bindings?.ws?.query ?? {};
  return Object.entries(properties).map(([name, schema]) =>
    parameter({ name, in: "query", schema, required: required.includes(name), description: schema?.description }),
  );
}

/** The messages of a channel, each from the side of the server: `receive` or `send`. */
function messagesOf(asyncapi, name, channel) {
  const here = `#/channels/${name}`;
  const mine = Object.values(asyncapi.operations ?? {}).filter((operation) => operation?.channel?.$ref === here);
  return mine.flatMap(({ action, messages = [] }) =>
    messages.flatMap(({ $ref }) => {
      const message = channel.messages?.[String($ref).slice(`${here}/messages/`.length)];
      return message ? [{ action, type: message.contentType ?? "", schema: message.payload }] : [];
    }),
  );
}

/** Arrange entries as folders: `{name, path, folders, entries}`, each level in order. */
export function treeOf(entries) {
  const root = { name: "", path: "", folders: [], entries: [] };
  const known = new Map([["", root]]);
  for (const entry of entries) {
    let place = root;
    for (const name of entry.folders) {
      const path = place.path ? `${place.path}/${name}` : name;
      if (!known.has(path)) {
        const folder = { name, path, folders: [], entries: [] };
        known.set(path, folder);
        place.folders.push(folder);
      }
      place = known.get(path);
    }
    place.entries.push(entry);
  }
  const byName = new Intl.Collator(undefined, { numeric: true });
  for (const folder of known.values()) {
    folder.folders.sort((one, other) => byName.compare(one.name, other.name));
  }
  return root;
}

/** Every entry of a folder and of those in it. */
export function entriesBelow(folder) {
  return [...folder.entries, ...folder.folders.flatMap(entriesBelow)];
}

/** Find a folder by its path; null where there is none. */
export function folderAt(root, path) {
  let place = root;
  for (const name of path.split("/").filter(Boolean)) {
    place = place?.folders.find((folder) => folder.name === name) ?? null;
  }
  return place;
}

/** Whether every word of a query is somewhere in what an entry says of itself. */
export function matches(entry, words) {
  const text = `${entry.method} ${entry.url} ${entry.summary} ${entry.file ?? ""}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** The document with one operation, and of the components what it refers to or asks for. */
export function slice(openapi, entry) {
  const { paths, components = {}, tags, webhooks, ...rest } = openapi;
  const item = paths[entry.url];
  const method = entry.method.toLowerCase();
  const { tags: _, ...operation } = item[method];
  if (!entry.summary) delete operation.summary;
  const shown = { [method]: tryable(operation, (schema) => resolved(schema, components.schemas ?? {})) };
  if (item.parameters) shown.parameters = item.parameters;
  if (item.servers) shown.servers = item.servers;
  const asked = (operation.security ?? openapi.security ?? []).flatMap(Object.keys);
  const schemes = Object.entries(components.securitySchemes ?? {}).filter(([name]) => asked.includes(name));
  const kept = { securitySchemes: Object.fromEntries(schemes) };
  const seen = new Set();
  keep(shown);
  return { ...rest, components: kept, paths: { [entry.url]: shown } };

  function keep(value) {
    if (value === null || typeof value !== "object") return;
    const target = typeof value.$ref === "string" ? value.$ref : null;
    if (target !== null && !seen.has(target)) {
      seen.add(target);
      const [, group, name] = /^#\/components\/([^/]+)\/([^/]+)/.exec(target) ?? [];
      const key = name?.replaceAll("~1", "/").replaceAll("~0", "~");
      if (key !== undefined && Object.hasOwn(components[group] ?? {}, key)) {
        (kept[group] ??= {})[key] = components[group][key];
        keep(components[group][key]);
      }
    }
    Object.values(value).forEach(keep);
  }
}

/** Names of the parameters of a path, in order. */
export function pathParameters(url) {
  return [...url.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1]);
}

/** The path with values for its parameters, each one segment. */
export function filled(url, values) {
  return url.replace(/\{([^{}]+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ""));
}
