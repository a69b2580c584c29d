// A page opened from disk (file://) may not start a worker, so search would stay silent. Here a
// hidden frame of the same page runs the worker's script instead; nothing is fetched from
// elsewhere. Only what the search uses is there: onmessage, onerror, postMessage, terminate.
if (location.protocol === "file:") {
  const later = (call) => setTimeout(call, 0) // as messages of a worker come: after this task
  window.Worker = class {
    constructor(url) {
      this.onmessage = this.onerror = null
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.ready = new Promise((resolve, reject) => {
        this.frame.addEventListener("load", () => {
          const inside = this.frame.contentWindow
          const script = inside.document.createElement("script")
          inside.postMessage = (data) => later(() => this.onmessage && this.onmessage({ data }))
          script.src = new URL(url, location.href).href
          script.onload = () => resolve(inside)
          script.onerror = () => reject(new Error("the search script is missing"))
          inside.document.head.append(script)
        })
      })
      this.ready.catch((error) => {
        if (this.onerror) this.onerror({ error, preventDefault() {} })
      })
      this.frame.srcdoc = "<!doctype html><title>search</title>"
      const attach = () => document.body.append(this.frame)
      if (document.body) attach()
      else document.addEventListener("DOMContentLoaded", attach)
    }

    postMessage(data) {
      const copy = structuredClone(data)
      this.ready.then((inside) => later(() => inside.onmessage({ data: copy })), () => {})
    }

    terminate() {
      this.frame.remove()
    }
  }
}
