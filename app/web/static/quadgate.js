// Everything here is an addition: each page can be read and used without it, apart from what happens live.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Copy buttons appear only where copying works.
  for (const button of $$("[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      const before = button.textContent;
      button.textContent = button.dataset.done;
      setTimeout(() => { button.textContent = before; }, 1600);
    });
  }

  // A form is sent once: a second click on a slow line starts nothing twice.
  document.addEventListener("submit", (event) => {
    if (event.target.dataset.sent) { event.preventDefault(); return; }
    event.target.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => { for (const form of $$("form[data-sent]")) delete form.dataset.sent; });

  // Files that the service would refuse are told before they travel.
  for (const input of $$("input[type=file][data-most-mib]")) {
    input.addEventListener("change", () => {
      const { mostFiles, mostMib, eachMib, refusal } = input.dataset;
      const sizes = [...input.files].map((file) => file.size / 2 ** 20);
      const all = sizes.reduce((sum, size) => sum + size, 0);
      const refused = sizes.length > mostFiles || all > mostMib || sizes.some((size) => size > eachMib);
      input.setCustomValidity(refused ? refusal : "");
      if (refused) input.reportValidity();
    });
  }

  // A YAML file chosen from disk is put into the text field, where it can be read before it is sent.
  for (const input of $$("input[type=file][data-fills]")) {
    input.addEventListener("change", async () => {
      const file = input.files[0];
      if (file && file.size < 1e6) $(input.dataset.fills).value = await file.text();
    });
  }

  const live = $("[data-stream]");
  if (live) startLive(live);

  function startLive(root) {
    const log = $("#log");
    const pill = $("#new-lines");
    const follow = $("#follow");
    const words = root.dataset;
    let following = true;
    let unseen = 0;
    let lines = Number(log.dataset.lines || "0");
    let lastEvent = Number(log.dataset.last || "0");
    let lastSample = Number(root.dataset.sample || "0");
    let lastHeard = Date.now();
    let leaving = false;

    function setFollowing(on) {
      following = on;
      follow.setAttribute("aria-pressed", String(on));
      follow.textContent = on ? follow.dataset.on : follow.dataset.off;
      if (on) { log.scrollTop = log.scrollHeight; unseen = 0; pill.hidden = true; }
    }
    const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    follow.addEventListener("click", () => setFollowing(!following));
    pill.addEventListener("click", () => setFollowing(true));
    // Only a person moves the log upwards; a line that breaks anew moves it too, but never up.
    let top = 0;
    log.addEventListener("scroll", () => {
      const up = log.scrollTop < top;
      top = log.scrollTop;
      if (following && up && !atEnd()) setFollowing(false);
      else if (!following && atEnd()) setFollowing(true);
    });
    log.scrollTop = log.scrollHeight;
    // A turned phone or a narrower window breaks lines anew: who follows stays at the newest.
    new ResizeObserver(() => { if (following) log.scrollTop = log.scrollHeight; }).observe(log);

    // Text only: a line of a playbook can never become markup.
    function addLine(className, text, number) {
      const line = document.createElement("p");
      if (number) {
        line.id = `L${number}`;
        const link = document.createElement("a");
        link.href = `#L${number}`;
        link.textContent = number;
        line.append(link);
      }
      const span = document.createElement("span");
      span.className = className;
      span.textContent = text;
      line.append(span);
      log.append(line);
    }

    function onEvents(list) {
      $("#log-empty")?.remove();
      for (const event of list) {
        if (event.id <= lastEvent) continue;
        lastEvent = event.id;
        for (const line of event.lines) {
          lines += 1;
          unseen += 1;
          addLine(line.kind ? `k-${line.kind}` : "", line.text, lines);
        }
      }
      if (log.childElementCount > 20000) {
        while (log.childElementCount > 15000) log.firstElementChild.remove();
        addLine("gap", log.dataset.gap);
        log.prepend(log.lastElementChild);
      }
      if (following) { log.scrollTop = log.scrollHeight; unseen = 0; }
      else { pill.hidden = unseen === 0; pill.textContent = words.newLines.replace("{n}", unseen); }
      const count = $("#log-count");
      if (count) count.textContent = lines;
    }

    function onSteps(state) {
      const count = $("#steps-count");
      if (count) count.textContent = words.steps.replace("{done}", state.steps_done).replace("{all}", state.steps_total);
      for (const step of state.steps) {
        const li = document.getElementById(`step-${step.id}`);
        if (!li) continue;
        li.className = `s-${step.status}`;
        $("[data-status]", li).textContent = step.words;
        const shape = $("[data-shape]", li);
        if (shape) shape.setAttribute("href", `/static/shapes.svg#step-${step.status}`);
        const problem = $("[data-problem]", li);
        problem.textContent = step.problem;
        problem.hidden = !step.problem;
      }
      const progress = $("#progress");
      if (progress) { progress.max = state.steps_total; progress.value = state.steps_done; }
      const badge = $("#run-badge .badge");
      if (badge) {
        $("span", badge).textContent = state.status_words;
        $("use", badge).setAttribute("href", `/static/shapes.svg#s-${state.status}`);
      }
      // The end, a form to fill in, silence: the server renders the page anew, once.
      if (state.mark !== root.dataset.mark && !leaving) { leaving = true; window.location.reload(); }
    }

    const trace = makeTrace($("#trace"));
    function onSamples(batch) {
      $("#sample-count").textContent = batch.count_text;
      const rate = $("#sample-rate");
      if (rate) rate.textContent = batch.rate_text;
      if (batch.phase) $("#sample-phase").textContent = batch.phase;
      trace(batch.rate);
    }

    // The connection: it is made anew by itself, at growing intervals, and the reader is told since when there is none.
    const stale = $("#stale");
    const QUIET = 35000;  // the service says something every 15 s
    const LONGEST = 30000;
    let source = null;
    let tries = 0;
    let waiting = 0;

    const clock = (at) => new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: words.zone }).format(at);
    function setAway(on) {
      if (!stale || stale.hidden === !on) return;
      if (on) stale.textContent = words.away.replace("{time}", `${clock(lastHeard)} ${words.zone}`);
      stale.hidden = !on;
      const mark = $("#is-live");
      if (mark) mark.hidden = on;
    }
    function address() {
      return `${root.dataset.stream}?after=${lastEvent}&sample=${lastSample}&lang=${document.documentElement.lang}`;
    }
    function lost() {
      if (source) source.close();
      source = null;
      if (waiting || root.dataset.running !== "yes" || leaving) return;
      setAway(true);
      const pause = Math.min(LONGEST, 1000 * 2 ** tries) * (0.75 + Math.random() / 4);  // not all readers at once
      tries += 1;
      waiting = setTimeout(again, pause);
    }
    // An EventSource does not tell why it was refused: who is no longer signed in is led to the door, anything else is tried again.
    async function again() {
      clearTimeout(waiting);
      waiting = 0;
      const asked = new AbortController();
      const patience = setTimeout(() => asked.abort(), 10000);
      try {
        const answer = await fetch(address(), { redirect: "manual", signal: asked.signal, headers: { Accept: "text/event-stream" } });
        if (answer.type === "opaqueredirect") { leaving = true; window.location.reload(); return; }
        if (answer.status === 404) {  // no longer there for this reader
          root.dataset.running = "no";
          stale.textContent = words.gone;
          return;
        }
        if (answer.ok) connect(); else lost();
      } catch {
        lost();
      } finally {
        clearTimeout(patience);
        asked.abort();  // what is read is read by the EventSource
      }
    }
    const atOnce = () => { if (waiting && !document.hidden) again(); };
    document.addEventListener("visibilitychange", atOnce);
    window.addEventListener("online", atOnce);
    setInterval(() => { if (source && Date.now() - lastHeard > QUIET) lost(); }, 5000);

    function connect() {
      source = new EventSource(address());
      const mine = source;
      const heard = (handler) => (event) => {
        lastHeard = Date.now();
        tries = 0;
        setAway(false);
        lastSample = Math.max(lastSample, Number((/\.s(\d+)$/.exec(event.lastEventId) || [])[1] || 0));  // ids are eEVENT.sSAMPLE
        handler(JSON.parse(event.data));
      };
      source.addEventListener("log", heard(onEvents));
      source.addEventListener("state", heard(onSteps));
      source.addEventListener("samples", heard(onSamples));
      source.addEventListener("gap", heard((gap) => addLine("gap", gap.text)));
      source.addEventListener("pulse", heard(() => {}));
      source.addEventListener("bye", heard((bye) => {
        mine.close();
        source = null;
        if (bye.ended) root.dataset.running = "no";
        else if (bye.reload) window.location.reload();  // nobody is signed in any more: the server leads to the door
        else setTimeout(connect, 500);
      }));
      source.addEventListener("error", () => { if (mine === source) lost(); });
    }
    if (root.dataset.running === "yes") connect();
  }

  // Arrival rate of samples over the last minutes: a rate, never a latency, so it can be shown during G3 too.
  function makeTrace(svg) {
    const points = [];
    return (rate) => {
      if (!svg || rate === null) return;
      points.push(rate);
      if (points.length > 120) points.shift();
      const top = Math.max(1, ...points) * 1.15;
      const step = 600 / 119;
      const from = 600 - (points.length - 1) * step;
      const at = points.map((value, i) => `${(from + i * step).toFixed(1)},${(100 - (value / top) * 96).toFixed(1)}`);
      $(".curve", svg).setAttribute("d", `M${at.join("L")}`);
      $(".area", svg).setAttribute("d", `M${at.join("L")}L600,100L${from.toFixed(1)},100Z`);
    };
  }
})();
