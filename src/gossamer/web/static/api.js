// Asks the server. Every error is one sentence.

async function answered(promise) {
  let response;
  try {
    response = await promise;
  } catch {
    throw new Error("The page's process does not answer. If the crawl has ended, so has its page; 'gossamer ui' with the crawl's folder shows it again.");
  }
  const type = response.headers.get("content-type") ?? "";
  const content = type.includes("json") ? await response.json() : {};
  if (!response.ok) throw new Error(content.error ?? `The server answered ${response.status}.`);
  return content;
}

export function get(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== "" && value !== undefined && value !== null) query.set(name, value);
  const text = query.toString();
  return answered(fetch(text ? `${path}?${text}` : path));
}

export function command(name, fields = {}) {
  const body = JSON.stringify({ command: name, ...fields });
  return answered(fetch("/api/control", { method: "POST", headers: { "Content-Type": "application/json" }, body }));
}
