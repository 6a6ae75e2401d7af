"use strict";
// Replays the recording that the page carries. Frame n is the state after n of its events; all that is shown of a frame
// is made once, hidden, and shown or hidden by seeking. Text of the recording only ever becomes text nodes.

const recording = JSON.parse(document.getElementById("recording").textContent);
const frames = recording.frames;
const $ = (id) => document.getElementById(id);

function make(tag, className, text, parent) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

const visible = (text) => text.replaceAll("\n", "⏎").replaceAll("\t", "⇥");
const percent = (value) => (value === undefined ? "" : (100 * value).toFixed(1) + "%");
const milliseconds = (seconds) => (1000 * seconds).toFixed(1) + " ms";

// The transcript: for every frame the elements that appear with it.

const shown = frames.map(() => []);
const figures = frames.map(() => null); // what the lane's figures read from this frame on
const lanes = [];

function build() {
  recording.requests.forEach((request, index) => {
    const section = make("section", "", undefined, $("transcript"));
    make("div", "who", "you", section);
    make("div", "asked", request.prompt, section);
    const row = make("div", "lanes", undefined, section);
    lanes[index] = request.lanes.map((lane) => {
      const column = make("div", "lane", undefined, row);
      make("div", "who", lane.name + " · " + lane.how, column);
      return { figures: make("div", "figures", "", column), reply: make("div", "reply", undefined, column) };
    });
    section.hidden = true;
    const first = frames.findIndex((frame) => frame.request === index);
    if (first >= 0) shown[first].push(section);
  });
  frames.forEach((frame, index) => {
    const lane = lanes[frame.request][frame.lane];
    const event = frame.event;
    const show = (element) => {
      element.hidden = true;
      shown[index].push(element);
    };
    if (event.type === "DraftBatch") buildBatch(lane, event, index, show);
    else if (event.type === "Changed") show(make("span", "change note", `── ${event.what} ${event.old} → ${event.new} ──`, lane.reply));
    else if (event.type === "Finished") show(make("span", "note", "\n" + event.reason, lane.reply));
    else if (event.type === "Failed") show(make("span", "note failed", "\n" + event.message, lane.reply));
    if (frame.figures) figures[index] = frame.figures;
  });
}

function buildBatch(lane, batch, index, show) {
  const add = (token, kind, position) => {
    if (token.text === "") return;
    const text = kind === "rejected" || kind === "discarded" ? visible(token.text) : token.text;
    const span = make("span", kind, text, lane.reply);
    if (!begun) span.classList.add("step");
    begun = true;
    span.addEventListener("click", () => inspect(index, position, span));
    show(span);
  };
  let begun = false;
  const drafted = batch.drafted;
  drafted.slice(0, Math.min(batch.accepted, batch.emitted)).forEach((token, i) => add(token, "accepted", i));
  drafted.slice(batch.accepted).forEach((token, i) => add(token, i ? "discarded" : "rejected", batch.accepted + i));
  if (batch.emitted > batch.accepted) add(batch.bonus, bonusKind(batch), batch.accepted);
}

function bonusKind(batch) {
  if (batch.drafted.length === 0) return "plain";
  return batch.accepted === batch.drafted.length ? "bonus" : "correction";
}

// Seeking

let position = 0;

function seek(target) {
  target = Math.max(0, Math.min(frames.length, target));
  for (; position < target; position++) for (const element of shown[position]) element.hidden = false;
  for (; position > target; position--) for (const element of shown[position - 1]) element.hidden = true;
  for (const request of lanes) for (const lane of request) lane.figures.textContent = "";
  for (let i = 0; i < position; i++) if (figures[i]) lanes[frames[i].request][frames[i].lane].figures.textContent = figures[i];
  $("seek").value = position;
  const at = position ? frames[position - 1].at : 0;
  $("clock").textContent = `${position} of ${frames.length} · ${at.toFixed(2)} s`;
  const last = position ? shown[position - 1].at(-1) : null;
  if (last) last.scrollIntoView({ block: "nearest" });
}

const isStep = (frame) => frame.event.type === "DraftBatch";
const isRejection = (frame) => isStep(frame) && frame.event.accepted < frame.event.drafted.length;

function forward(wanted) {
  let i = position;
  while (i < frames.length && !wanted(frames[i])) i++;
  seek(i + 1);
}

function back() {
  let i = position - 1;
  while (i > 0 && !isStep(frames[i])) i--;
  seek(i);
}

// Playing

let playing = false;
let from = { frame: 0, at: 0, time: 0 }; // when and where playing began

function play(on) {
  if (on && position >= frames.length) seek(0);
  playing = on;
  from = { at: position ? frames[position - 1].at : 0, time: performance.now() };
  $("play").textContent = on ? "pause" : "play";
  if (on) requestAnimationFrame(tick);
}

function tick(now) {
  if (!playing) return;
  const at = from.at + ((now - from.time) / 1000) * Number($("speed").value);
  let i = position;
  while (i < frames.length && frames[i].at <= at) i++;
  if (i !== position) seek(i);
  if (i >= frames.length) play(false);
  else requestAnimationFrame(tick);
}

// The inspector

function inspect(index, at, span) {
  play(false);
  for (const element of document.querySelectorAll(".chosen")) element.classList.remove("chosen");
  span.classList.add("chosen");
  const batch = frames[index].event;
  const panel = $("inspector");
  panel.replaceChildren();
  const drafts = batch.drafted.length;
  make("h2", "", `Step ${batch.step}: ${recording.methods[batch.method]}, depth ${batch.depth}`, panel);
  const kept = drafts ? `${batch.accepted} of ${drafts} drafts accepted, ${batch.emitted} tokens kept` : "nothing drafted";
  make("p", "", `${kept}. Drafted in ${milliseconds(batch.draft_s)}, verified in ${milliseconds(batch.verify_s)}.`, panel);
  const table = make("table", "", undefined, panel);
  const head = make("tr", "", undefined, make("thead", "", undefined, table));
  for (const name of ["", "token", "drafter", "target", ""]) make("th", "", name, head);
  const body = make("tbody", "", undefined, table);
  batch.drafted.forEach((token, i) => {
    const view = (batch.target || [])[i];
    const fate = i < batch.accepted ? "✓ accepted" : i === batch.accepted ? "✗ rejected" : "discarded";
    row(body, i + 1, token, token.prob, view && view.prob, fate, i === at && i !== batch.accepted);
  });
  row(body, "→", batch.bonus, undefined, batch.bonus.prob, bonusKind(batch), at === batch.accepted);
  const token = at < drafts ? batch.drafted[at] : undefined;
  const view = (batch.target || [])[at];
  if (token && token.alternatives) candidates(panel, `Drafter's candidates at position ${at + 1}`, token.alternatives);
  if (view) candidates(panel, `Target's candidates at position ${at + 1}`, view.candidates);
  else if (at === batch.accepted && batch.bonus.alternatives) candidates(panel, "Target's candidates", batch.bonus.alternatives);
}

function row(body, name, token, drafter, target, fate, current) {
  const line = make("tr", current ? "current" : "", undefined, body);
  make("td", "number", name, line);
  make("td", "token", visible(token.text) || `(${token.id})`, line);
  make("td", "number", percent(drafter), line);
  make("td", "number", percent(target), line);
  make("td", "", fate, line);
}

function candidates(panel, title, tokens) {
  make("h2", "", title, panel);
  const body = make("tbody", "", undefined, make("table", "", undefined, panel));
  for (const token of tokens) {
    const line = make("tr", "", undefined, body);
    make("td", "token", visible(token.text) || `(${token.id})`, line);
    make("td", "number", percent(token.prob), line);
    make("meter", "", undefined, make("td", "", undefined, line)).value = token.prob;
  }
}

// Controls

$("about").textContent = recording.about;
$("seek").max = frames.length;
$("back").addEventListener("click", () => { play(false); back(); });
$("forward").addEventListener("click", () => { play(false); forward(isStep); });
$("rejection").addEventListener("click", () => { play(false); forward(isRejection); });
$("play").addEventListener("click", () => play(!playing));
$("seek").addEventListener("input", (event) => { play(false); seek(Number(event.target.value)); });
$("discarded").addEventListener("change", (event) => document.body.classList.toggle("all", event.target.checked));
$("speed").addEventListener("change", () => play(playing));
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, button") || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = { " ": "play", ArrowLeft: "back", ArrowRight: "forward", n: "rejection" }[event.key];
  if (!action) return;
  event.preventDefault();
  $(action).click();
});

build();
const asked = new URLSearchParams(location.hash.slice(1)).get("frame"); // page.html#frame=12 opens there
seek(asked === null ? frames.length : Number(asked) || 0);
