// One operation, drawn and tried out by Swagger UI. It is loaded when the first one is opened, is
// given a document of that operation alone, and never sees an address from outside.

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

/** Draw operations into `host`; `onAnswer` hears of every answer to a try-out. */
export function makeOperationView(host, { assets, onAnswer }) {
  let ui = null;
  let wanted = null;

  return {
    async show(openapi, entry) {
      wanted = entry;
      const bundle = await loadSwagger(assets);
      if (wanted !== entry) return; // the reader has gone on while it loaded
      const spec = slice(openapi, entry);
      if (ui) ui.specActions.updateJsonSpec(spec);
      else ui = start(bundle, host, spec, onAnswer);
      mend(host);
    },
    leave() {
      wanted = null;
    },
  };
}

function start(bundle, host, spec, onAnswer) {
  return bundle({
    domNode: host,
    spec,
    layout: "OneOperation",
    presets: [bundle.presets.apis],
    plugins: [plainText, oneOperation],
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
