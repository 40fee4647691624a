"use strict";
// Asks the server once a second, and shows what it says. Names come from users: they are set as text,
// never as markup.

const EVERY_MS = 1000;
const WAITS_SHOWN = 6;
const CHART_HEIGHT = 180;
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600]; // seconds between two marks of a chart
const $ = (id) => document.getElementById(id);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function short(value) {
  if (value == null || !isFinite(value)) return "-";
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toFixed(2) + " G";
  if (size >= 1e6) return (value / 1e6).toFixed(2) + " M";
  if (size >= 1e4) return (value / 1e3).toFixed(1) + " k";
  return size >= 100 || Number.isInteger(value) ? Math.round(value).toString() : value.toFixed(1);
}
function micros(value) {
  if (!(value > 0)) return "-";
  return value >= 1e6 ? (value / 1e6).toFixed(2) + " s"
    : value >= 1e3 ? (value / 1e3).toFixed(2) + " ms" : Math.round(value) + " us";
}
const bytes = (value) => value >= 1 << 30 ? (value / (1 << 30)).toFixed(2) + " GiB"
  : value >= 1 << 20 ? (value / (1 << 20)).toFixed(1) + " MiB" : (value / 1024).toFixed(0) + " KiB";
const clock = (unix) => new Date(unix * 1000).toLocaleTimeString([], { hourCycle: "h23" });

// One chart: made anew when its lines or the colours change, else only its numbers.
class Chart {
  constructor(place, unit) { this.place = $(place); this.unit = unit; this.plot = null; this.lines = ""; }
  show(times, lines) {
    const names = lines.map((line) => line.name).join("|");
    const data = [times, ...lines.map((line) => line.heights)];
    if (!this.plot || this.lines !== names) {
      this.forget();
      this.lines = names;
      const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
      const series = lines.map((line, at) => ({
        label: line.name, stroke: colour(line.colour), width: 1.5, points: { show: false },
        fill: line.isArea ? colour(line.colour) + "aa" : undefined,
        value: (plot, height, which, moment) => {
          const own = this.own && this.own[at];
          return own == null || moment == null ? "-" : this.unit(own[moment]);
        },
      }));
      this.plot = new uPlot({
        width: this.place.clientWidth, height: CHART_HEIGHT, series: [{ value: (plot, time) => time == null ? "-" : clock(time) }, ...series],
        axes: [{ ...axis, space: 70, incrs: TIME_STEPS, values: (plot, times) => times.map(clock) }, { ...axis, size: 56, values: (plot, marks) => marks.map(this.unit) }],
        scales: { y: { range: (plot, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
        cursor: { y: false },
      }, data, this.place);
    } else {
      this.plot.setData(data);
    }
    this.own = lines.map((line) => line.values);
  }
  fit() { if (this.plot) this.plot.setSize({ width: this.place.clientWidth, height: CHART_HEIGHT }); }
  forget() { if (this.plot) { this.plot.destroy(); this.plot = null; } }
}

const charts = {
  rate: new Chart("rate-chart", short),
  wait: new Chart("wait-chart", short),
  sync: new Chart("sync-chart", short),
  write: new Chart("write-chart", short),
  byte: new Chart("byte-chart", short),
};
addEventListener("resize", () => Object.values(charts).forEach((chart) => chart.fit()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  Object.values(charts).forEach((chart) => chart.forget());
});

const line = (name, colourName, values) => ({ name, colour: colourName, values, heights: values });

// The waits that took most, each upon the ones after it; what is left is one more.
function stacked(history) {
  const sums = new Map();
  for (const second of history) {
    for (const wait of second.waits) sums.set(wait.wait, (sums.get(wait.wait) || 0) + wait.sessions);
  }
  const most = [...sums].sort((a, b) => b[1] - a[1]).slice(0, WAITS_SHOWN).map((entry) => entry[0]);
  const own = most.map((name) => history.map((second) => (second.waits.find((w) => w.wait === name) || { sessions: 0 }).sessions));
  const names = [...most];
  if (sums.size > most.length) {
    names.push("others");
    own.push(history.map((second) => second.waits.filter((w) => !most.includes(w.wait)).reduce((sum, w) => sum + w.sessions, 0)));
  }
  // Painted in this order, each covers the lower part of the one before it.
  return names.map((name, at) => ({
    name, colour: "--c" + at, isArea: true, values: own[at],
    heights: history.map((second, moment) => own.slice(at).reduce((sum, values) => sum + values[moment], 0)),
  }));
}

function showHistory(history) {
  const times = history.map((second) => second.unix_millis / 1000);
  const of = (name, by = 1) => history.map((second) => second[name] == null ? null : second[name] / by);
  charts.rate.show(times, [line("rows inserted", "--c0", of("rows")), line("commits", "--c1", of("commits")), line("rows read", "--c2", of("rows_read"))]);
  charts.sync.show(times, [line("commits per sync", "--c0", of("commits_per_sync"))]);
  charts.write.show(times, [line("mean", "--c0", of("log_write_us")), line("99 of 100 within", "--c1", of("log_write_p99_us"))]);
  const leaf = 16384 / 1e6;
  charts.byte.show(times, [line("log", "--c0", of("log_bytes", 1e6)), line("checkpoint", "--c1", history.map((s) => s.checkpoint_pages * leaf)), line("read", "--c2", history.map((s) => s.leaf_loads * leaf))]);
  charts.wait.show(times, stacked(history));
}

function showNow(second) {
  $("rows").textContent = short(second.rows);
  $("commits").textContent = short(second.commits);
  $("per-sync").textContent = short(second.commits_per_sync);
  $("write").textContent = micros(second.log_write_us);
  $("write-p99").textContent = micros(second.log_write_p99_us);
  $("queue").textContent = second.log_queue;
}

function row(cells) {
  const made = document.createElement("tr");
  for (const [text, isNumber] of cells) {
    const cell = document.createElement("td");
    cell.textContent = text;
    if (isNumber) cell.className = "n";
    made.append(cell);
  }
  return made;
}

function memoryOf(now) {
  const parts = [...(now.memory || [])].sort((a, b) => b.used_bytes - a.used_bytes);
  const all = bytes(parts.reduce((sum, part) => sum + part.used_bytes, 0));
  const of = now.memory_limit_bytes ? `${all} of ${bytes(now.memory_limit_bytes)}` : all;
  return `${of}: ${parts.map((part) => `${part.name} ${bytes(part.used_bytes)}`).join(", ")}`;
}

function showFacts(view) {
  const now = view.statistics;
  const stage = now.checkpoint.stage;
  const facts = [
    ["leaves", short(now.leaves)],
    ["leaves in memory", `${short(now.frames[0])} of ${short(now.frames[1])}`],
    ["memory", memoryOf(now)],
    ["large transactions", `${now.large_transactions[0]} open, ${bytes(now.large_transactions[1])} of log`],
    ["data files", bytes(now.slots * 16384)],
    ["log in use", `${bytes(now.log_space_bytes[0])} of ${bytes(now.log_space_bytes[1])}`],
    ["checkpoint", stage === "none" ? "none is running" : `${stage}, ${now.checkpoint.written} of ${now.checkpoint.leaves} leaves`],
    ["redone at opening", `${short(now.recovery.records)} records`],
  ];
  $("storage").replaceChildren(...facts.flatMap(([name, value]) => {
    const [term, told] = [document.createElement("dt"), document.createElement("dd")];
    [term.textContent, told.textContent] = [name, value];
    return [term, told];
  }));
  $("tables").replaceChildren(...view.tables.map((t) => row([[t.name], [t.columns, true], [t.primary_key], [t.is_logged ? "yes" : "no"]])));
  const sessions = [...view.sessions].sort((a, b) => b.calls - a.calls).slice(0, 200);
  $("session-count").textContent = view.sessions.length > 200 ? `200 of ${view.sessions.length}` : `${view.sessions.length}`;
  $("sessions").replaceChildren(...sessions.map((session) => {
    const most = [...session.waits].sort((a, b) => b.nanos - a.nanos)[0];
    return row([[session.id, true], [called(session)], [session.waits_now || "-"], [short(session.calls), true],
      [most ? most.wait : "-"], [most ? micros(most.nanos / 1e3) : "-", true]]);
  }));
}

// Whose a session is: application, user and address, if its client is known.
function called(session) {
  const client = session.client;
  return client ? `${client.application || session.name} ${client.user}@${client.address}` : session.name;
}

let phasesBefore = null;
function showPhases(totals) {
  const now = new Map(totals.phases.map((phase) => [phase.phase, phase.nanos]));
  const before = phasesBefore;
  phasesBefore = now;
  if (!before) return;
  const spent = [...now].map(([name, nanos]) => [name, Math.max(0, nanos - (before.get(name) || 0))])
    .filter(([name, nanos]) => nanos > 0 && name !== "IDLE");
  spent.sort((a, b) => b[1] - a[1]);
  const most = spent.length ? spent[0][1] : 1;
  const sum = spent.reduce((all, [, nanos]) => all + nanos, 0);
  $("phases").replaceChildren(...spent.flatMap(([name, nanos]) => {
    const [label, space, bar, value] = ["span", "div", "i", "b"].map((tag) => document.createElement(tag));
    label.textContent = name.toLowerCase().replaceAll("_", " ");
    bar.style.width = (100 * nanos / most).toFixed(1) + "%";
    space.append(bar);
    value.textContent = (100 * nanos / sum).toFixed(0) + "%";
    return [label, space, value];
  }));
}

async function look() {
  try {
    const answer = await fetch("/view.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    const view = await answer.json();
    $("state").textContent = `version ${view.version}, process ${view.process}, up ${Math.round(view.statistics.elapsed_nanos / 1e9)} s`;
    $("state").className = "";
    if (view.history.length > 0) {
      showHistory(view.history);
      showNow(view.history[view.history.length - 1]);
    }
    showPhases(view.statistics.totals);
    showFacts(view);
  } catch (error) {
    $("state").textContent = `no answer: ${error.message}`;
    $("state").className = "bad";
  }
  setTimeout(look, EVERY_MS);
}
look();
