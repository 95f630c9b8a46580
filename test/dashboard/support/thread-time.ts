import type { Page } from 'playwright-core';

/** Processor time of the page's main thread during `work`, in milliseconds: other programs do not lengthen it as they do the time of a frame. */
export async function threadTimeMs(page: Page, work: () => Promise<unknown>): Promise<number> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
  const read = async (): Promise<number> => {
    const { metrics } = await devtools.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration')!.value * 1000;
  };
  const before = await read();
  await work();
  const after = await read();
  await devtools.detach();
  return after - before;
}

/** Scrolls down by 100 pixels in each frame; returns the processor time of a frame in milliseconds. */
export async function scrollFrameMs(page: Page, selector: string, numFrames: number): Promise<number> {
  const scroll = (): Promise<void> =>
    page.locator(selector).evaluate(
      (element, frames) =>
        new Promise<void>((resolve) => {
          let numDrawn = 0;
          element.scrollTop = 0;
          requestAnimationFrame(function step() {
            element.scrollTop += 100;
            if (++numDrawn < frames) requestAnimationFrame(step);
            else resolve();
          });
        }),
      numFrames,
    );
  return (await threadTimeMs(page, scroll)) / numFrames;
}
