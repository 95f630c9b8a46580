import { clipText } from '../common/text-limits.ts';

/** Of a message; longer ones are cut and their length is kept. */
export const MAX_EPISODE_CHARS = 1 << 14;
/** A passage has few sentences, so that its vector is about one thing. */
const PASSAGE_CHARS = 60;
/** A sentence without an end is cut here. */
const MAX_PASSAGE_CHARS = 600;

const SENTENCE = /[^\n.!?。！？]*(?:[.!?。！？]+["')\]»”]*(?=\s|$)|[.!?。！？]+|\n+|$)\s*/gy;

/** Divides a message at the ends of sentences: short ones share a passage, long ones are cut. */
export function toPassages(message: string): string[] {
  const { text } = clipText(message, MAX_EPISODE_CHARS);
  const passages: string[] = [];
  let open = '';
  const close = (): void => {
    if (open.trim() !== '') passages.push(open.trim());
    open = '';
  };
  for (const sentence of sentencesOf(text)) {
    if (open !== '' && open.length + sentence.length > PASSAGE_CHARS) close();
    open += sentence;
  }
  close();
  return passages;
}

function* sentencesOf(text: string): Generator<string> {
  let whole = '';
  for (const [part] of text.matchAll(SENTENCE)) {
    whole += part;
    // "3.14" and "e.g." do not end a sentence.
    if (!/[\s"')\]»”]$|[。！？]$/.test(part) && part !== '') continue;
    yield* pieces(whole);
    whole = '';
  }
  yield* pieces(whole);
}

function* pieces(sentence: string): Generator<string> {
  for (let at = 0; at < sentence.length;) {
    const { text } = clipText(sentence.slice(at), MAX_PASSAGE_CHARS);
    yield text;
    at += Math.max(1, text.length);
  }
}
