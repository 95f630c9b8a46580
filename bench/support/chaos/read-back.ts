import type { Seen } from './mixed-load.ts';

interface Answer {
  readonly status: number;
  readonly text: string;
}

const MAX_WAITS = 100;

/** Reads everything that was acknowledged through a gateway; one sentence for each write that is not there. */
export async function findLost(
  url: string,
  seen: Seen,
): Promise<{ readonly lost: string[]; readonly numRead: number }> {
  const lost: string[] = [];
  let numRead = 0;

  /** A refusal that can be tried again is none of the outcomes. */
  async function ask(path: string, body?: object): Promise<Answer> {
    for (let i = 0; ; i++) {
      const response = await fetch(url + path, body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }); // prettier-ignore
      const text = await response.text();
      if (response.status < 500 || i === MAX_WAITS) return { status: response.status, text };
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  function check(isThere: boolean, what: string): void {
    numRead++;
    if (!isThere) lost.push(what);
  }

  const listed = new Map<string, string>();
  for (let after: string | null | undefined; after !== null;) {
    const { status, text } = await ask('/admin/memory/list', { kinds: ['document'], limit: 1000, order: 'oldest', ...(after === undefined ? {} : { after }) }); // prettier-ignore
    if (status !== 200) throw new Error(`reading the records back: ${status} ${text}`);
    const page = JSON.parse(text) as { records: { id: string; text: string }[]; next: string | null };
    for (const { id, text: stored } of page.records) listed.set(id, stored);
    after = page.next;
  }
  for (const [id, text] of seen.records) check(listed.get(id) === text, `record ${id} (${text})`);
  for (const [sessionId, turns] of seen.turns) {
    const { status, text } = await ask('/admin/memory/sessions/show', { sessionId, limit: 1000 });
    for (const turn of turns)
      check(status === 200 && text.includes(`"${turn}"`), `${turn} of ${sessionId} (${status})`);
  }
  for (const [id, verdict] of seen.ratings) {
    const { status, text } = await ask(`/v1/feedback/${id}`);
    check(status === 200 && text.includes(`"verdict":"${verdict}"`), `rating ${verdict} of ${id} (${status} ${text.slice(0, 100)})`); // prettier-ignore
  }
  for (const [id, input] of seen.responses) {
    const { status, text } = await ask(`/v1/responses/${id}/input_items`);
    check(status === 200 && text.includes(`"${input}"`), `response ${id} (${input}, ${status})`);
  }
  return { lost, numRead };
}
