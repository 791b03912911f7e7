// From a JSON Schema to a value that fits it, as a start for somebody who writes a message. A guess
// where a schema says little; never an error, whatever a document says.

const TEXTS = {
  date: "2030-01-31",
  "date-time": "2030-01-31T12:00:00Z",
  time: "12:00:00",
  duration: "PT1H",
  email: "name@example.org",
  uri: "urn:example:1",
  uuid: "00000000-0000-4000-8000-000000000000",
  decimal: "1.50",
};
const DEEP = 6;
const PARTS = 200;

/** Give a value for a schema; references lead into `schemas`, the components of the document. */
export function sampleOf(schema, schemas) {
  return valueOf(schema, schemas, 0, { parts: 0 });
}

function valueOf(schema, schemas, depth, made) {
  const known = resolved(schema, schemas);
  if (known === null || typeof known !== "object") return null;
  if (depth > DEEP || ++made.parts > PARTS) return null; // one that holds itself has no end
  if (known.const !== undefined) return known.const;
  if (Array.isArray(known.examples) && known.examples.length) return known.examples[0];
  for (const key of ["example", "default"]) if (known[key] !== undefined) return known[key];
  if (Array.isArray(known.enum)) return known.enum[0];
  const below = (inner) => valueOf(inner, schemas, depth + 1, made);
  const options = known.anyOf ?? known.oneOf;
  if (Array.isArray(options)) return below(options.find((option) => option?.type !== "null") ?? options[0]);
  if (Array.isArray(known.allOf)) {
    const parts = known.allOf.map(below);
    return parts.every((part) => part !== null && typeof part === "object") ? Object.assign({}, ...parts) : parts[0];
  }
  const type = Array.isArray(known.type) ? known.type.find((name) => name !== "null") : known.type;
  if (type === "object" || known.properties) {
    return Object.fromEntries(Object.entries(known.properties ?? {}).map(([name, inner]) => [name, below(inner)]));
  }
  if (type === "array") return (known.prefixItems ?? (known.items ? [known.items] : [])).map(below);
  if (type === "string") return TEXTS[known.format] ?? textOf(known);
  if (type === "integer" || type === "number") return numberOf(known);
  return type === "boolean" ? false : null;
}

function textOf({ minLength = 0, maxLength }) {
  return "text".padEnd(Math.min(minLength, PARTS), "-text").slice(0, maxLength);
}

/** Zero, or what is within the limits and near to one of them. */
function numberOf({ minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below, multipleOf }) {
  const first = multipleOf ? Math.ceil(minimum / multipleOf) * multipleOf : minimum;
  const next = multipleOf ? (Math.floor(above / multipleOf) + 1) * multipleOf : above + 1;
  const between = ((above ?? minimum) + (below ?? maximum)) / 2;
  const tried = [0, first, next, maximum, below - 1, between];
  const fits = (n) => !(n < minimum || n > maximum || n <= above || n >= below); // what is not said limits nothing
  return tried.find((n) => Number.isFinite(n) && fits(n)) ?? 0;
}

/** The schema that a reference leads to; itself where it is none. */
export function resolved(schema, schemas, left = DEEP) {
  const name = nameOf(schema);
  if (name === null || left === 0) return schema;
  return resolved(Object.hasOwn(schemas, name) ? schemas[name] : {}, schemas, left - 1);
}

/** The name of the component that a schema refers to; null where it is written out. */
export function nameOf(schema) {
  const target = typeof schema?.$ref === "string" ? schema.$ref : "";
  const found = /^#\/components\/schemas\/([^/]+)$/.exec(target);
  return found ? found[1].replaceAll("~1", "/").replaceAll("~0", "~") : null;
}

/** The schema with every component that it reaches, as one document to read. */
export function whole(schema, schemas) {
  const reached = {};
  const waiting = [schema];
  while (waiting.length) {
    const part = waiting.pop();
    if (part === null || typeof part !== "object") continue;
    const name = nameOf(part);
    if (name !== null && !Object.hasOwn(reached, name) && Object.hasOwn(schemas, name)) {
      reached[name] = schemas[name];
      waiting.push(schemas[name]);
    }
    waiting.push(...Object.values(part));
  }
  const named = nameOf(schema);
  if (named !== null && Object.keys(reached).length === 1) return reached[named];
  return Object.keys(reached).length ? { ...schema, $defs: reached } : schema;
}
