/* Fetches what follows by itself.
 *
 * All sections and plots of a page share one queue: there is never more than one request at a time, nor more than one a
 * second; fewer while the page is hidden.  One that fails is tried again after longer and longer pauses, and the page
 * says since when it is old.  After 401 or 403 nothing is asked any more, and the page says to log in.  What else is
 * refused, as what was deleted meanwhile, is an answer like any other: `done` shows it.
 */
(function () {
  "use strict";

  var GAP = 1000; // milliseconds between two requests
  var HIDDEN_GAP = 15000;
  var LIMIT = 15000; // for an answer
  var LONGEST_PAUSE = 30000;

  var tasks = [];
  var busy = false;
  var stopped = false;
  var lastBegin = 0;
  var timer = null;

  /* A task has `element`, `url` (of a fragment or JSON), `seconds` (0: once), and `done(response)`, a promise. */
  function add(task) {
    task.failures = 0;
    task.fresh = Date.now();
    task.due = task.now ? 0 : Date.now() + task.seconds * 1000;
    tasks.push(task);
    plan();
  }

  function plan() {
    clearTimeout(timer);
    tasks = tasks.filter(function (task) { return task.element.isConnected && task.due !== Infinity; });
    if (busy || stopped || !tasks.length) { return; }
    var next = tasks.reduce(function (first, task) { return task.due < first.due ? task : first; });
    var gap = document.hidden ? HIDDEN_GAP : GAP;
    timer = setTimeout(run, Math.max(0, next.due - Date.now(), lastBegin + gap - Date.now()), next);
  }

  function run(task) {
    var ending = new AbortController();
    var limit = setTimeout(function () { ending.abort(); }, LIMIT);
    busy = true;
    lastBegin = Date.now();
    fetch(task.url, {
      credentials: "same-origin",
      headers: { "X-Requested-With": "XMLHttpRequest" },
      signal: ending.signal
    }).then(function (response) {
      var elsewhere = response.headers.has("X-Horizon-Location") || response.redirected;
      if (response.status === 401 || response.status === 403 || elsewhere) {
        stop();
        return null;
      }
      if (response.status >= 500) { throw new Error("status " + response.status); }
      return task.done(response).then(function () { succeed(task); });
    }).catch(function () { fail(task); }).then(function () {
      clearTimeout(limit);
      busy = false;
      plan();
    });
  }

  function succeed(task) {
    task.failures = 0;
    task.fresh = Date.now();
    task.due = task.seconds ? lastBegin + task.seconds * 1000 : Infinity;
    showAge();
  }

  function fail(task) {
    task.failures += 1;
    var pause = Math.min(LONGEST_PAUSE, Math.max(1, task.seconds) * 1000 * Math.pow(2, task.failures - 1));
    task.due = Date.now() + pause;
    showAge();
  }

  function showAge() {
    var banner = document.querySelector("[data-sluice-stale]");
    var old = tasks.filter(function (task) { return task.failures; });
    if (!banner) { return; }
    if (old.length) {
      var since = new Date(Math.min.apply(null, old.map(function (task) { return task.fresh; })));
      var time = banner.querySelector("time");
      time.dateTime = since.toISOString();
      time.textContent = since.toLocaleTimeString();
    }
    banner.hidden = !old.length;
  }

  function stop() {
    stopped = true;
    var banner = document.querySelector("[data-sluice-login]");
    if (!banner) { return; }
    var link = banner.querySelector("a");
    link.search = "?next=" + encodeURIComponent(location.pathname + location.search);
    banner.hidden = false;
  }

  function announce(text) {
    var place = document.getElementById("sluice-announcer");
    if (place) { place.textContent = text; }
  }

  document.addEventListener("visibilitychange", plan);
  window.sluice = { poll: add, announce: announce, stop: stop };
})();
