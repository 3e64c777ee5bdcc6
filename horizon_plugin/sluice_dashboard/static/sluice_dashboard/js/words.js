/* The list of words that may follow, below the editor of policies (<form data-editor data-words-url=…>).
 *
 * It opens while one types, or with Ctrl+Space.  The focus stays in the field, whose `aria-activedescendant` names the
 * chosen word.  What the API answers is put in by `textContent` alone: tenants choose names.
 */
(function () {
  "use strict";

  var PAUSE = 200; // milliseconds without a key before words are asked for
  var SHOWN = 20;

  /* Offsets of the API count characters, those of a field UTF-16 units. */
  function units(text, characters) { return Array.from(text).slice(0, characters).join("").length; }
  function characters(text, units) { return Array.from(text.slice(0, units)).length; }

  function begin(form) {
    var field = form.querySelector("textarea");
    var list = form.querySelector("[role=listbox]");
    var found = null; // the last answer
    var chosen = 0;
    var timer = null;
    var last = 0; // number of the last question; older answers are dropped

    function close() {
      last += 1;
      clearTimeout(timer);
      list.hidden = true;
      field.removeAttribute("aria-activedescendant");
    }

    function choose(number) {
      var options = list.children;
      chosen = (number + options.length) % options.length;
      Array.prototype.forEach.call(options, function (one, index) {
        one.setAttribute("aria-selected", String(index === chosen));
      });
      field.setAttribute("aria-activedescendant", options[chosen].id);
      options[chosen].scrollIntoView({ block: "nearest" });
    }

    function option(candidate, number) {
      var made = document.createElement("li");
      var word = document.createElement("strong");
      var help = document.createElement("span");
      made.id = "policy-word-" + number;
      made.setAttribute("role", "option");
      made.dataset.kind = candidate.kind;
      word.textContent = candidate.label;
      help.textContent = candidate.help;
      made.append(word, " ", help);
      return made;
    }

    function show(answer, whole) {
      var typed = field.value.slice(units(field.value, answer.start), field.selectionStart);
      var alone = answer.candidates.length === 1 && answer.candidates[0].text === typed;
      if (!answer.candidates.length || (alone && !whole)) {
        close();
        return;
      }
      found = answer;
      list.replaceChildren.apply(list, answer.candidates.slice(0, SHOWN).map(option));
      list.hidden = false;
      choose(0);
      window.sluice.announce(list.getAttribute("aria-label") + ": " + list.children.length);
    }

    function ask(whole) {
      var number = last += 1;
      var body = new FormData(form);
      body.append("position", characters(field.value, field.selectionStart));
      fetch(form.dataset.wordsUrl, {
        method: "POST",
        body: body,
        credentials: "same-origin",
        headers: { "X-Requested-With": "XMLHttpRequest" }
      }).then(function (response) {
        return response.ok && !response.redirected ? response.json() : { candidates: [] };
      }).then(function (answer) {
        if (number === last) { show(answer, whole); }
      }).catch(close); // what is checked says that nobody answers
    }

    function insert(number) {
      var text = field.value;
      var end = units(text, found.end);
      var word = found.candidates[number].text;
      var space = /^\s/.test(text.slice(end)) ? "" : " ";
      close();
      window.sluice.write(field, units(text, found.start), end, word + space);
    }

    field.addEventListener("input", function () {
      close();
      timer = setTimeout(ask, PAUSE, false);
    });
    field.addEventListener("keydown", function (event) {
      if (event.ctrlKey && event.code === "Space") {
        event.preventDefault();
        ask(true);
        return;
      }
      if (list.hidden || event.isComposing) { return; }
      var move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (move) { choose(chosen + move); }
      if (event.key === "Enter" || event.key === "Tab") { insert(chosen); }
      if (event.key === "Escape") { close(); }
      if (move || ["Enter", "Tab", "Escape"].indexOf(event.key) >= 0) { event.preventDefault(); }
    });
    field.addEventListener("blur", close);
    list.addEventListener("mousedown", function (event) {
      var clicked = event.target.closest("[role=option]");
      event.preventDefault(); // the focus stays in the field
      if (clicked) { insert(Array.prototype.indexOf.call(list.children, clicked)); }
    });
  }

  document.querySelectorAll("[data-editor]").forEach(begin);
})();
