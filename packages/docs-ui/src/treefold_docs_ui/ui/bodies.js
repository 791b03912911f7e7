// A request body as Swagger UI must be told it, so that a try-out sends what the reader typed and
// nothing else. Pure functions; the document that is shown elsewhere stays as it is.

const FORMS = ["application/x-www-form-urlencoded", "multipart/form-data"];

/** The operation with a body that can be tried out; `resolve` gives the schema behind a reference. */
export function tryable(operation, resolve) {
  const body = operation.requestBody;
  if (!body?.content) return operation;
  const content = Object.entries(body.content).map(([type, media]) => [
    type,
    FORMS.includes(type) ? form(media, resolve) : described(media),
  ]);
  return { ...operation, requestBody: { ...body, content: Object.fromEntries(content) } };
}

/** Where there is no schema, Swagger UI would show no field at all. */
function described(media) {
  return media.schema ? media : { example: {}, ...media, schema: {} };
}

function form(media, resolve) {
  const schema = resolve(media.schema ?? {});
  const properties = Object.entries(schema.properties ?? {});
  const required = schema.required ?? [];
  const shown = properties.map(([name, each]) => [name, required.includes(name) ? each : empty(each, resolve)]);
  // Else it sends the items of a list as one text, with commas between them.
  const lists = properties.filter(([, known]) => isPlainList(resolve(known)));
  const apart = lists.map(([name]) => [name, { style: "form", explode: true }]);
  return {
    ...media,
    schema: { ...schema, properties: Object.fromEntries(shown) },
    encoding: { ...Object.fromEntries(apart), ...media.encoding },
  };
}

/** A field that need not be sent starts empty: Swagger UI would write an example into it, and send that. */
function empty(schema, resolve) {
  const known = resolve(schema);
  if (known.default !== undefined || known.format === "binary" || known.type === "object") return known;
  return { ...known, default: known.type === "array" ? [] : "" };
}

function isPlainList({ type, items }) {
  return type === "array" && items?.format !== "binary";
}
