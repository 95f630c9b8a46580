/** One event of a stream, as clients see it. */
export interface SseEvent {
  readonly event: string;
  readonly data: any;
}

/** The events of a stream with named events. */
export async function readSseEvents(response: Response): Promise<SseEvent[]> {
  const text = await response.text();
  return text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const match = /^event: (.*)\ndata: (.*)$/.exec(block);
      if (match === null) throw new Error(`not an event: ${block}`);
      return { event: match[1]!, data: JSON.parse(match[2]!) as unknown };
    });
}
