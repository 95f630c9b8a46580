// Records a page as WebM without an encoder of our own: screenshots are drawn on a canvas of a second page, whose MediaRecorder encodes them.

const FRAMES_PER_SECOND = 8;
const BITS_PER_SECOND = 600_000;

/** Starts to record; the returned function ends it and returns the file. */
export async function recordPage(browser, page) {
  const { width, height } = page.viewportSize();
  const studio = await (await browser.newContext()).newPage();
  await studio.evaluate(
    ({ width, height, bitsPerSecond }) => {
      const canvas = Object.assign(document.createElement('canvas'), { width, height });
      const context = canvas.getContext('2d');
      const stream = canvas.captureStream(0);
      const recorder = new MediaRecorder(stream, { mimeType: 'video/webm;codecs=vp8', videoBitsPerSecond: bitsPerSecond });
      const parts = [];
      recorder.ondataavailable = ({ data }) => parts.push(data);
      globalThis.draw = async (source) => {
        const image = new Image();
        image.src = source;
        await image.decode();
        context.drawImage(image, 0, 0);
        stream.getVideoTracks()[0].requestFrame();
      };
      globalThis.finish = async () => {
        const stopped = new Promise((resolve) => (recorder.onstop = resolve));
        recorder.stop();
        await stopped;
        const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
        return bytes.reduce((text, byte) => text + String.fromCharCode(byte), '');
      };
      recorder.start();
    },
    { width, height, bitsPerSecond: BITS_PER_SECOND },
  ); // prettier-ignore
  const state = { isRecording: true };
  const frames = (async () => {
    while (state.isRecording) {
      const startMs = performance.now();
      const shot = await page.screenshot({ type: 'jpeg', quality: 80 });
      await studio.evaluate((source) => globalThis.draw(source), `data:image/jpeg;base64,${shot.toString('base64')}`);
      const restMs = 1000 / FRAMES_PER_SECOND - (performance.now() - startMs);
      if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs));
    }
  })();
  return async () => {
    state.isRecording = false;
    await frames;
    const bytes = Buffer.from(await studio.evaluate(() => globalThis.finish()), 'latin1');
    await studio.context().close();
    return bytes;
  };
}
