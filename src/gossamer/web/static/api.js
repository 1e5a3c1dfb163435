// Asks the server, with the token. Every error is one sentence.

const STORED = `gossamer-token ${location.pathname}`;  // behind one proxy there may be several dashboards
const NO_TOKEN = "The token is missing or wrong. Open the whole address that gossamer printed, up to its end: it contains the token. Every start of the dashboard has a new one.";
const GONE = "The process of the dashboard does not answer. If the crawl has ended, so has its dashboard; 'gossamer ui' with the crawl's folder shows it again.";

let token = "";
enter();

// The address that was printed has the token behind its #, which no server gets. It is stored for this origin, which
// includes the port: a cookie would be sent to every server of this machine.
function enter() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  try {
    if (found) localStorage.setItem(STORED, found[1]);
    token = found ? found[1] : localStorage.getItem(STORED) ?? "";
  } catch {
    token = found ? found[1] : "";  // nothing may be stored: until the page is loaded again
  }
  if (found) history.replaceState(null, "", `${location.pathname}#/`);
}

// Relative, so that the dashboard works below a path of another server, too.
export function address(path) {
  return new URL(path.replace(/^\//, ""), document.baseURI);
}

function ask(path, options = {}) {
  return fetch(address(path), { ...options, headers: { ...options.headers, Authorization: `Bearer ${token}` } });
}

async function answered(promise) {
  let response;
  try {
    response = await promise;
  } catch {
    throw new Error(GONE);
  }
  const type = response.headers.get("content-type") ?? "";
  const content = type.includes("json") ? await response.json() : {};
  if (response.status === 401) throw new Error(NO_TOKEN);
  if (!response.ok) throw new Error(content.error ?? `The server answered ${response.status}.`);
  return content;
}

export function get(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== "" && value !== undefined && value !== null) query.set(name, value);
  const text = query.toString();
  return answered(ask(text ? `${path}?${text}` : path));
}

export function command(name, fields = {}) {
  const body = JSON.stringify({ command: name, ...fields });
  return answered(ask("/api/control", { method: "POST", headers: { "Content-Type": "application/json" }, body }));
}

// A stream of server-sent events; the browser's own cannot send a token. `onevent` gets name and content of each,
// `onlost` why the stream has ended without being closed.
export function events(query, onevent, onlost) {
  const ending = new AbortController();
  const stream = {
    isOpen: true,
    close() {
      stream.isOpen = false;
      ending.abort();
    },
  };

  async function read() {
    const response = await ask(`/api/events?${query}`, { signal: ending.signal });
    if (!response.ok) await answered(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const messages = (rest + part.value).split("\n\n");
      rest = messages.pop();
      for (const message of messages) {
        const fields = Object.fromEntries(message.split("\n").map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]));
        if (fields.event && stream.isOpen) onevent(fields.event, JSON.parse(fields.data));
      }
    }
  }

  read().then(() => "", (error) => error.message).then((reason) => {
    if (!stream.isOpen) return;
    stream.isOpen = false;
    onlost(reason === NO_TOKEN ? reason : "");
  });
  return stream;
}
