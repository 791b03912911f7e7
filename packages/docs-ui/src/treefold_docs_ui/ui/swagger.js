// One operation, drawn and tried out by Swagger UI. It is loaded when the first one is opened, is
// given a document of that operation alone, and never sees an address from outside.

import { AWAY } from "./away.js";
import { h, prose } from "./dom.js";
import { mend } from "./mend.js";
import { slice } from "./model.js";

let loading = null;

/** Load the script and the style of Swagger UI, once. */
export function loadSwagger(assets) {
  loading ??= new Promise((resolve, reject) => {
    const script = h("script", { src: `${assets}/swagger-ui/swagger-ui-bundle.js` });
    script.addEventListener("load", () => resolve(window.SwaggerUIBundle));
    script.addEventListener("error", () => reject(new Error("Swagger UI could not be loaded")));
    const style = h("link", { rel: "stylesheet", href: `${assets}/swagger-ui/swagger-ui.css` });
    const ours = h("link", { rel: "stylesheet", href: `${assets}/operation.css` });
    document.head.append(style, ours, script);
  });
  return loading;
}

/** Draw operations into `host`; `onAnswer` hears of every answer to a try-out, `showLine` leads
 *  to the line of one in the log, where there is a log. */
export function makeOperationView(host, { assets, onAnswer, showLine }) {
  let ui = null;
  let wanted = null;

  return {
    async show(openapi, entry) {
      wanted = entry;
      const bundle = await loadSwagger(assets);
      if (wanted !== entry) return; // the reader has gone on while it loaded
      const spec = slice(openapi, entry);
      if (ui) ui.specActions.updateJsonSpec(spec);
      else ui = start(bundle, host, spec, { onAnswer, showLine });
      mend(host);
    },
    leave() {
      wanted = null;
    },
  };
}

function start(bundle, host, spec, { onAnswer, showLine }) {
  return bundle({
    domNode: host,
    spec,
    layout: "OneOperation",
    presets: [bundle.presets.apis],
    plugins: [plainText, oneOperation, successFirst, ranges, sendsWhatIsThere, longAnswers, leadsToLine(showLine), serverAway],
    docExpansion: "full",
    defaultModelsExpandDepth: -1,
    defaultModelExpandDepth: 2,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    deepLinking: false,
    queryConfigEnabled: false,
    persistAuthorization: false,
    validatorUrl: null,
    requestSnippetsEnabled: false,
    responseInterceptor(answer) {
      const { pathname } = new URL(answer.url || location.href, location.href);
      const id = answer.headers?.["x-request-id"];
      if (answer.status) onAnswer({ path: pathname, status: answer.status, id: id ?? null });
      return answer;
    },
  });
}

/** What documents say is text: no markup of theirs becomes markup of ours (S-115). */
function plainText({ React }) {
  return {
    wrapComponents: {
      Markdown: () => (props) =>
        React.createElement(
          "div",
          { className: "prose" },
          ...prose(props.source, (tag, attributes, ...children) =>
            React.createElement(tag, attributes, ...children),
          ),
        ),
    },
  };
}

/** Answers by their status: JavaScript puts `2XX` behind `404`, because that is no number. */
function successFirst({ React }) {
  return {
    wrapComponents: {
      responses: (Original) => (props) =>
        React.createElement(Original, { ...props, responses: props.responses.sortBy((_, status) => String(status)) }),
    },
  };
}

/** An answer of a range such as `2XX` is documented, too. */
function ranges({ React }) {
  return {
    wrapComponents: {
      liveResponse: (Original) => (props) => {
        const { path, method, response, specSelectors } = props;
        const range = `${String(response?.get("status"))[0]}XX`;
        const known = specSelectors.specJson().hasIn(["paths", path, method, "responses", range]);
        const shown = known ? response.set("notDocumented", false) : response;
        return React.createElement(Original, { ...props, response: shown });
      },
    },
  };
}

/** A field of a form that is empty is sent when the reader ticks its box, not before. */
function sendsWhatIsThere({ React }) {
  return {
    wrapComponents: {
      ParameterIncludeEmpty: (Original) => (props) =>
        React.createElement(Original, { ...props, isIncludedOptions: {} }),
    },
    components: Object.fromEntries(FORMATS.map((format) => [`JsonSchema_string_${format}`, asText])),
  };

  function asText(props) {
    return React.createElement(props.getComponent("JsonSchema_string"), props);
  }
}

/** Items of these formats are fields as others are; without a component of their own there is a warning. */
const FORMATS = ["binary", "date", "date-time", "decimal", "duration", "email", "ipv4", "ipv6", "time", "uri", "uuid"];

/** Colours for a long answer keep the page busy for minutes: it is shown in part, plain, and to be saved. */
function longAnswers({ React }) {
  const make = React.createElement;
  return {
    wrapComponents: {
      responseBody: (Original) => (props) => {
        const { content, contentType } = props;
        if (typeof content !== "string" || content.length <= LONG) return make(Original, props);
        const save = () => saveAs(content, contentType);
        const size = content.length.toLocaleString();
        return make(
          "div",
          { className: "long-answer" },
          make("h5", {}, "Response body"),
          make(
            "p",
            {},
            `The first ${LONG.toLocaleString()} of ${size} characters. `,
            make("button", { type: "button", className: "line-link", onClick: save }, "Save all of it"),
          ),
          make("pre", { className: "microlight", tabIndex: 0 }, content.slice(0, LONG)),
        );
      },
    },
  };
}

const LONG = 100_000;

function saveAs(text, type) {
  const url = URL.createObjectURL(new Blob([text], { type: type || "text/plain" }));
  h("a", { href: url, download: "answer" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Above each answer, the way to its line in the log. */
function leadsToLine(showLine) {
  return ({ React }) => ({
    wrapComponents: {
      liveResponse: (Original) => (props) => {
        const make = React.createElement;
        const id = showLine && props.response?.getIn?.(["headers", "x-request-id"]);
        const button = { type: "button", className: "line-link", onClick: () => showLine(id) };
        const link = id ? make("div", { className: "leads" }, make("button", button, "Show in the log")) : null;
        return make("div", { className: "answer" }, make(Original, props), link);
      },
    },
  });
}

/** A request without an answer: only a server that is away does not answer its own page. */
function serverAway({ React }) {
  return {
    wrapComponents: {
      liveResponse: (Original) => (props) => {
        const { response } = props;
        const answered = response?.get?.("status") || response?.getIn?.(["err", "status"]);
        if (!response?.get?.("error") || answered) return React.createElement(Original, props);
        return React.createElement("p", { className: "notice bad away", role: "alert" }, AWAY);
      },
    },
  };
}

/** The layout: credentials and the operation; title, servers and models are on our own page. */
function oneOperation({ React }) {
  const make = React.createElement;
  return {
    components: {
      OneOperation({ getComponent, specSelectors }) {
        const secured = specSelectors.securityDefinitions()?.size > 0;
        const part = (name) => make(getComponent(name, true));
        return make(
          "div",
          { className: "swagger-ui" },
          make(getComponent("SvgAssets")),
          part("errors"),
          secured ? make("div", { className: "authorize-line" }, part("AuthorizeBtnContainer")) : null,
          part("operations"),
        );
      },
    },
  };
}
