// Browsers start no worker from a page that was opened as a file. There the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      this.loaded = new Promise((done) => {
        frame.addEventListener("load", () => {
          const inner = frame.contentWindow;
          inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inner.document.createElement("script");
          script.src = new URL(url, document.baseURI).href;
          script.addEventListener("load", () => done(inner));
          inner.document.body.append(script);
        }, { once: true });
      });
      this.frame = frame;
      document.body.append(frame);
    }
    postMessage(data) {
      this.loaded.then((inner) => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
