/* Sends a form with a file, and shows and says how far it is.
 *
 * The page stays while it is sent, so that after an error the file and all that was typed are still chosen.  An answer
 * is a redirect, which Horizon turns into a header, or the form with its errors, which is merged into the present one.
 * Without this script the form works as any other.
 */
(function () {
  "use strict";

  var box = document.querySelector("[data-upload]");
  if (!box) { return; }
  var form = box.closest("form");
  var bar = box.querySelector("progress");
  var shown = box.querySelector("[data-upload-text]");
  var stop = box.querySelector("[data-upload-stop]");
  var submit = form.querySelector("button[type=submit]");
  var request = null;
  var quarter = -1;

  submit.classList.add("always-enabled"); // else Horizon lets a form be submitted once, and this one may be sent again

  function say(text) {
    shown.textContent = text;
    window.sluice.announce(text);
  }

  function progress(event) {
    if (!event.lengthComputable) { return; }
    var percent = Math.floor(event.loaded * 100 / event.total);
    var text = box.dataset.textSending.replace("{percent}", percent).replace("{size}", (event.total / 1e6).toFixed(1));
    bar.value = percent;
    shown.textContent = text;
    if (Math.floor(percent / 25) > quarter) { // a screen reader hears each quarter, not each percent
      quarter = Math.floor(percent / 25);
      window.sluice.announce(text);
    }
  }

  function end(text) {
    request = null;
    submit.disabled = false;
    bar.hidden = stop.hidden = true;
    if (text) { say(text); } else { box.hidden = true; }
  }

  function isOurs(node) {
    return node === box || node === submit;
  }

  function showErrors(text) {
    var fresh = new DOMParser().parseFromString(text, "text/html").querySelector("form.sluice-form");
    if (!fresh) { return false; }
    window.Idiomorph.morph(form, fresh.innerHTML, {
      morphStyle: "innerHTML",
      callbacks: { beforeNodeMorphed: function (node) { return !isOurs(node); } }
    });
    var errors = form.querySelectorAll("[role=alert]");
    var wrong = form.querySelector(".has-error input, .has-error select, .has-error textarea");
    window.sluice.announce(Array.prototype.map.call(errors, function (one) { return one.textContent.trim(); }).join(" "));
    if (wrong) { wrong.focus(); }
    return errors.length > 0;
  }

  function answered() {
    var elsewhere = this.getResponseHeader("X-Horizon-Location");
    if (this.status === 401) {
      end(box.dataset.textLogin);
    } else if (elsewhere) {
      location.assign(elsewhere);
    } else {
      end(showErrors(this.responseText) ? "" : box.dataset.textFailed);
    }
  }

  form.addEventListener("submit", function (event) {
    event.preventDefault();
    if (request) { return; }
    quarter = -1;
    bar.value = 0;
    bar.hidden = stop.hidden = box.hidden = false;
    submit.disabled = true;
    request = new XMLHttpRequest();
    request.open("POST", location.href);
    request.setRequestHeader("X-Requested-With", "XMLHttpRequest");
    request.upload.addEventListener("progress", progress);
    request.upload.addEventListener("load", function () { say(box.dataset.textTrying); });
    request.addEventListener("load", answered);
    request.addEventListener("error", function () { end(box.dataset.textCut); });
    request.addEventListener("abort", function () { end(box.dataset.textStopped); });
    request.send(new FormData(form));
  });

  stop.addEventListener("click", function () { if (request) { request.abort(); } });
})();
