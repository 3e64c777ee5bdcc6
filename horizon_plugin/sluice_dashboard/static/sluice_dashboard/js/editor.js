/* The editor of policies: <form data-editor data-check-url=…> (sluice_dashboard/policies/editor.html).
 *
 * Half a second after the last key the text is checked.  The server answers parts of the page, which are merged into
  * the elements `data-editor-part`: problems, and the meaning of the text.  Each problem has a position; a copy of the
 text
 * behind the field underlines it, and a button of a near miss writes it there.  An answer about an older text is dropped.
 */
(function () {
  "use strict";

  var PAUSE = 500; // milliseconds without a key before the text is checked
  var LIMIT = 15000; // for an answer

  /* Lines and columns of the API count characters from 1; those of a field count UTF-16 units. */
  function place(text, line, column) {
    var before = text.split("\n").slice(0, line - 1).reduce(function (sum, one) { return sum + one.length + 1; }, 0);
    var rest = Array.from(text.slice(before).split("\n")[0]).slice(0, column - 1).join("");
    return before + rest.length;
  }

  /* Writes `words` in the place of a part of the field, as if they were typed: the browser can undo it. */
  function write(field, start, end, words) {
    field.focus();
    field.setSelectionRange(start, end);
    if (!document.execCommand("insertText", false, words)) {
      field.setRangeText(words, start, end, "end");
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }

  function begin(form) {
    var field = form.querySelector("textarea");
    var marks = form.querySelector("[data-editor-marks]");
    var unchecked = form.querySelector("[data-editor-unchecked]");
    var timer = null;
    var asking = false;
    var again = false;

    function part(name) { return form.querySelector('[data-editor-part="' + name + '"]'); }

    function problems() {
      return Array.prototype.map.call(part("problems").querySelectorAll("[data-line]"), function (one) {
        return {
          severity: one.dataset.severity,
          start: place(field.value, Number(one.dataset.line), Number(one.dataset.column)),
          end: place(field.value, Number(one.dataset.line), Number(one.dataset.end)),
          button: one.querySelector("[data-repair]")
        };
      });
    }

    /* The copy looks as the field does in whichever theme. */
    function fit() {
      var look = getComputedStyle(field);
      ["font", "letterSpacing", "lineHeight", "padding", "borderWidth"].forEach(function (name) {
        marks.style[name] = look[name];
      });
      field.style.height = "auto";
      field.style.height = field.scrollHeight + field.offsetHeight - field.clientHeight + "px";
    }

    function underline(found) {
      var at = 0;
      marks.replaceChildren();
      found.slice().sort(function (a, b) { return a.start - b.start; }).forEach(function (one) {
        if (one.start < at) { return; }
        marks.append(field.value.slice(at, one.start));
        var mark = document.createElement("mark");
        mark.className = "sluice-" + one.severity;
        // at the end of a line there may be nothing to underline
        mark.textContent = field.value.slice(one.start, Math.max(one.end, one.start)) || "\u00a0";
        marks.append(mark);
        at = Math.max(one.end, one.start);
      });
      marks.append(field.value.slice(at) + "\n");
    }

    function show(html) {
      var answer = new DOMParser().parseFromString(html, "text/html");
      answer.querySelectorAll("[data-part]").forEach(function (one) {
        window.Idiomorph.morph(part(one.dataset.part), one.innerHTML, { morphStyle: "innerHTML" });
      });
      var found = problems();
      var errors = found.some(function (one) { return one.severity === "error"; });
      field.setAttribute("aria-invalid", String(errors));
      underline(found);
      window.sluice.announce(part("problems").textContent.replace(/\s+/g, " ").trim());
    }

    function check() {
      if (asking) {
        again = true;
        return;
      }
      var text = field.value;
      var ending = new AbortController();
      var limit = setTimeout(function () { ending.abort(); }, LIMIT);
      var body = new FormData(form);
      body.append("replaces", form.dataset.replaces);
      asking = true;
      fetch(form.dataset.checkUrl, {
        method: "POST",
        body: body,
        credentials: "same-origin",
        headers: { "X-Requested-With": "XMLHttpRequest" },
        signal: ending.signal
      }).then(function (response) {
        if (response.status === 401 || response.headers.has("X-Horizon-Location")) { window.sluice.stop(); }
        if (!response.ok || response.redirected) { throw new Error("status " + response.status); }
        return response.text();
      }).then(function (html) {
        unchecked.hidden = true;
        if (text === field.value) { show(html); }
      }).catch(function () { unchecked.hidden = false; }).then(function () {
        clearTimeout(limit);
        asking = false;
        if (again) {
          again = false;
          check();
        }
      });
    }

    function changed() {
      fit();
      underline([]); // what was found is somewhere else now
      clearTimeout(timer);
      timer = setTimeout(check, PAUSE);
    }

    field.addEventListener("input", changed);
    form.addEventListener("click", function (event) {
      var button = event.target.closest("[data-repair]");
      var found = button && problems().find(function (one) { return one.button === button; });
      if (found) { write(field, found.start, found.end, button.dataset.repair); }
    });
    form.addEventListener("submit", function () {
      form.querySelector("[type=submit]").disabled = true; // once is enough
    });
    window.addEventListener("pageshow", function () { form.querySelector("[type=submit]").disabled = false; });
    new ResizeObserver(fit).observe(field.parentElement);
    fit();
    underline(problems());
    if (field.value && !problems().length) { check(); }
  }

  window.sluice.write = write;
  document.querySelectorAll("[data-editor]").forEach(begin);
})();
