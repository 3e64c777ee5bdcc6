/* Sections that follow: <section data-live-url=… data-live-seconds=…> whose HTML the server renders.
 *
 * The new HTML is merged into the old, so that focus, selection and scroll positions stay.  A form in which somebody
 * has typed, or is, is left as it is; so are plots, which follow by themselves, and what was opened.
 * Text of an element with `data-announce` is read out when it changes.
 */
(function () {
  "use strict";

  function isEdited(form) {
    if (form.contains(document.activeElement)) { return true; }
    return Array.prototype.some.call(form.elements, function (field) {
      if (field.type === "checkbox" || field.type === "radio") { return field.checked !== field.defaultChecked; }
      if (field.options) {
        return Array.prototype.some.call(field.options, function (one) { return one.selected !== one.defaultSelected; });
      }
      return "defaultValue" in field && field.value !== field.defaultValue;
    });
  }

  function isOurs(node) {
    if (node.nodeType !== Node.ELEMENT_NODE) { return false; }
    return node.matches("[data-plot-url]") || (node.matches("form") && isEdited(node));
  }

  function holdsOurs(node) {
    if (node.nodeType !== Node.ELEMENT_NODE) { return false; }
    return isOurs(node) || Array.prototype.some.call(node.querySelectorAll("form"), isEdited);
  }

  var merging = {
    morphStyle: "innerHTML",
    ignoreActiveValue: true,
    callbacks: {
      beforeNodeMorphed: function (node) { return !isOurs(node); },
      beforeNodeRemoved: function (node) { return !holdsOurs(node); },
      beforeAttributeUpdated: function (name, node) { return !(name === "open" && node.matches("details")); }
    }
  };

  function texts(section) {
    return Array.prototype.map.call(section.querySelectorAll("[data-announce]"), function (one) {
      return one.textContent.trim();
    });
  }

  function renew(section, html) {
    var before = texts(section);
    window.Idiomorph.morph(section, html, merging);
    var fresh = texts(section).filter(function (text) { return before.indexOf(text) < 0; });
    if (fresh.length) { window.sluice.announce(fresh.join(" ")); }
    section.dispatchEvent(new CustomEvent("sluice:renewed", { bubbles: true }));
  }

  document.querySelectorAll("[data-live-url]").forEach(function (section) {
    window.sluice.poll({
      element: section,
      url: section.dataset.liveUrl,
      seconds: Number(section.dataset.liveSeconds),
      done: function (response) {
        return response.text().then(function (html) { renew(section, html); });
      }
    });
  });
})();
