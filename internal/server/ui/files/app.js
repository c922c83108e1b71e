"use strict";

const $ = (id) => document.getElementById(id);
const pools = ["weights", "kv", "activation", "staging", "runtime"];
const talk = [];
let running = null; // the AbortController of an answer that comes

function size(n) {
  for (const [unit, factor] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (Math.abs(n) >= factor) return (n / factor).toFixed(n >= 10 * factor ? 0 : 1) + " " + unit;
  }
  return n + " B";
}

function headers() {
  const key = sessionStorage.getItem("key");
  return Object.assign({ "Content-Type": "application/json" }, key ? { Authorization: "Bearer " + key } : {});
}

function element(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

// ---- chat

async function problem(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return response.status + " " + response.statusText;
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
    }
  }
}

function bubble(role) {
  const e = element("div", "message " + role);
  $("messages").append(e);
  return e;
}

// part returns the last child of a class, or a new one.
function part(parent, className) {
  const last = parent.lastElementChild;
  return last && last.className === className ? last : parent.appendChild(element("div", className));
}

function show(bubble, delta, answer) {
  if (delta.reasoning_content) part(bubble, "reasoning").textContent += delta.reasoning_content;
  if (delta.content) {
    answer.content += delta.content;
    part(bubble, "content").textContent += delta.content;
  }
  for (const call of delta.tool_calls || []) {
    part(bubble, "call").textContent += (call.function.name ? call.function.name + " " : "") + (call.function.arguments || "");
  }
  $("messages").scrollTop = $("messages").scrollHeight;
}

async function send(text) {
  talk.push({ role: "user", content: text });
  bubble("user").textContent = text;
  const e = bubble("assistant");
  const answer = { role: "assistant", content: "" };
  running = new AbortController();
  $("send").textContent = "Stop";
  try {
    const body = { model: $("model").value, messages: talk, stream: true };
    if ($("temperature").value !== "") body.temperature = Number($("temperature").value);
    const response = await fetch("/v1/chat/completions", { method: "POST", headers: headers(), body: JSON.stringify(body), signal: running.signal });
    if (!response.ok) throw new Error(await problem(response));
    for await (const event of events(response.body)) {
      if (event.error) throw new Error(event.error.message);
      for (const choice of event.choices || []) show(e, choice.delta || {}, answer);
    }
  } catch (err) {
    if (err.name !== "AbortError") e.append(element("div", "error", err.message));
  }
  talk.push(answer);
  running = null;
  $("send").textContent = "Send";
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("input").value.trim();
  if (running) running.abort();
  else if (text) {
    $("input").value = "";
    send(text);
  }
});

$("input").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("form").requestSubmit();
  }
});

$("reset").addEventListener("click", () => {
  if (running) running.abort();
  talk.length = 0;
  $("messages").replaceChildren();
  $("input").focus();
});

$("key").addEventListener("click", () => {
  const key = prompt("API key");
  if (key !== null) sessionStorage.setItem("key", key);
  look();
});

// ---- the live picture

const history = new Map(); // by model: {time, read, tokens, speeds}

function segment(bar, share, color, title) {
  const i = element("i");
  i.style.width = (100 * Math.max(0, Math.min(1, share))).toFixed(2) + "%";
  i.style.background = color;
  i.title = title;
  bar.append(i);
}

function showMemory(memory) {
  $("limit").textContent = `${size(memory.used)} of ${size(memory.limit)} leased, ${size(memory.rss)} resident`;
  $("pools").replaceChildren();
  $("legend").replaceChildren();
  for (const name of pools) {
    const used = memory.pools[name].used;
    segment($("pools"), used / memory.limit, `var(--${name})`, `${name}: ${size(used)}`);
    const li = element("li", "", `${name} ${size(used)}`);
    li.style.setProperty("--of", `var(--${name})`);
    $("legend").append(li);
  }
}

function rates(m) {
  const now = performance.now() / 1000;
  const h = history.get(m.name) || { speeds: [] };
  const tokens = m.requests.answer_tokens;
  if (h.time) {
    const dt = now - h.time;
    h.drive = Math.max(0, (m.drive.read_bytes - h.read) / dt);
    h.rate = Math.max(0, (tokens - h.tokens) / dt);
    h.speeds.push(h.drive);
    if (h.speeds.length > 60) h.speeds.shift();
  }
  Object.assign(h, { time: now, read: m.drive.read_bytes, tokens });
  history.set(m.name, h);
  return h;
}

function sparkline(values) {
  const c = element("canvas");
  c.width = 340;
  c.height = 44;
  const g = c.getContext("2d");
  const top = Math.max(...values, 1);
  g.fillStyle = getComputedStyle(document.body).getPropertyValue("--weights");
  values.forEach((v, i) => g.fillRect(i * 5.7, 44 - (44 * v) / top, 4.7, (44 * v) / top));
  c.title = "bytes read from the drive each second";
  return c;
}

function rows(pairs) {
  const dl = element("dl");
  for (const [name, value] of pairs) dl.append(element("dt", "", name), element("dd", "", value));
  return dl;
}

function showModel(m) {
  const e = element("div", "model");
  e.append(element("h3", "", `${m.name} · ${m.family} ${m.type} · ${size(m.bytes)}`));
  if (!m.loaded) {
    e.append(element("div", "dim", "not loaded"));
    return e;
  }
  const h = rates(m), w = m.weights, kv = m.kv, r = m.requests;
  const bar = element("div", "bar");
  segment(bar, w.pinned / m.bytes, "var(--weights)", `pinned: ${size(w.pinned)}`);
  segment(bar, w.streamed_per_sweep / m.bytes, "color-mix(in srgb, var(--weights) 35%, transparent)", `streamed: ${size(w.streamed_per_sweep)}`);
  const blocks = element("div", "bar");
  segment(blocks, kv.used / kv.blocks, "var(--kv)", `in use: ${kv.used} blocks`);
  segment(blocks, kv.idle / kv.blocks, "color-mix(in srgb, var(--kv) 40%, transparent)", `kept for prefixes: ${kv.idle} blocks`);
  const pairs = [
    ["weights pinned", size(w.pinned)],
    ["streamed a sweep", size(w.streamed_per_sweep)],
  ];
  if (w.expert_slots) pairs.push(["experts in memory", `${w.expert_slots} slots, ${percent(m.drive.expert_hits, m.drive.experts)} hits`]);
  pairs.push(
    ["KV blocks in use, kept, all", `${kv.used}, ${kv.idle}, ${kv.blocks}`],
    ["prompts found in the cache", percent(kv.prefix_hit_tokens, kv.prefix_queried_tokens)],
    ["requests running, waiting", `${r.running}, ${r.waiting}`],
    ["tokens a second", (h.rate || 0).toFixed(1)],
    ["drive", size(h.drive || 0) + "/s"],
  );
  e.append(element("div", "dim", "weights"), bar, element("div", "dim", "key-value cache"), blocks, rows(pairs));
  if (h.speeds.some((v) => v > 0)) e.append(sparkline(h.speeds));
  return e;
}

function percent(part, whole) {
  return whole > 0 ? ((100 * part) / whole).toFixed(0) + " %" : "–";
}

function showNames(models) {
  const select = $("model");
  if ([...select.options].map((o) => o.value).join() === models.map((m) => m.name).join()) return;
  select.replaceChildren(...models.map((m) => new Option(m.name, m.name)));
}

async function look() {
  try {
    const response = await fetch("/admin/state", { headers: headers() });
    $("key").hidden = response.status !== 401;
    if (!response.ok) throw new Error(await problem(response));
    const state = await response.json();
    showMemory(state.memory);
    showNames(state.models);
    $("models").replaceChildren(...state.models.map(showModel));
    $("footer").textContent = `version ${state.version}, up ${Math.round(state.uptime_seconds)} s, ${state.memory.threads} threads`;
  } catch (err) {
    $("footer").textContent = err.message;
  }
}

look();
setInterval(() => document.hidden || look(), 1000);
