// Browsers start no worker from a file. This one runs its script in a hidden frame, so that the search works there too.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.onload = () => {
        const inside = this.frame.contentWindow;
        inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data }));
        const script = inside.document.createElement("script");
        script.src = new URL(url, location.href).href;
        script.onerror = (error) => this.onerror?.(error);
        script.onload = () => {
          this.deliver = (data) => setTimeout(() => inside.onmessage({ data }));
          this.waiting.forEach(this.deliver);
        };
        inside.document.head.append(script);
      };
      document.documentElement.append(this.frame);
    }

    postMessage(data) {
      if (this.deliver) this.deliver(data);
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
