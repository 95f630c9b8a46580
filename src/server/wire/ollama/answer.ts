import type { AnswerChunk, LastChunk } from '../../../runtime/requests/answer-chunks.ts';

/** The fields of every object of an answer, and what the end of it reports. */
export interface AnswerHead {
  readonly model: string;
  readonly kind: 'chat' | 'generate';
  readonly hasThinking: boolean;
  readonly createdAt: () => string;
  readonly loadMs: number;
  /** Milliseconds since the request came. */
  readonly elapsedMs: () => number;
}

interface OllamaToolCall {
  readonly id: string;
  readonly function: { readonly index: number; readonly name: string; readonly arguments: object };
}

/** One object of a stream, before it is written in the form of its route. */
interface Piece {
  readonly content: string;
  readonly thinking: string;
  readonly toolCalls: readonly OllamaToolCall[];
  readonly last: LastChunk | null;
}

const toNs = (ms: number): number => Math.round(ms * 1e6);
const DONE_REASONS = { stop: 'stop', length: 'length', tool_calls: 'stop' } as const;

/** Tool calls are collected, because Ollama sends each one whole. */
async function* readPieces(events: AsyncIterable<AnswerChunk>): AsyncGenerator<Piece, void, undefined> {
  const argumentsOf = new Map<number, string>();
  for await (const chunk of events) {
    const toolCalls: OllamaToolCall[] = [];
    for (const { index, id, name, arguments: more, outcome } of chunk.toolCalls) {
      const text = (argumentsOf.get(index) ?? '') + more;
      argumentsOf.set(index, text);
      // A call that was cut off or malformed has no arguments that a client could use.
      if (outcome !== 'complete') continue;
      const parsed = JSON.parse(text === '' ? '{}' : text) as object;
      toolCalls.push({ id, function: { index, name, arguments: parsed } });
    }
    const last = chunk.finishReason === null ? null : chunk;
    yield { content: chunk.text, thinking: chunk.reasoning, toolCalls, last };
  }
}

function writePiece(head: AnswerHead, { content, thinking, toolCalls }: Omit<Piece, 'last'>): object {
  const thought = head.hasThinking && thinking !== '' ? { thinking } : {};
  const base = { model: head.model, created_at: head.createdAt() };
  if (head.kind === 'generate') return { ...base, response: content, ...thought };
  const calls = toolCalls.length === 0 ? {} : { tool_calls: toolCalls };
  return { ...base, message: { role: 'assistant', content, ...thought, ...calls } };
}

function writeEnd(head: AnswerHead, { finishReason, usage, timings }: LastChunk): object {
  return {
    done: true,
    done_reason: DONE_REASONS[finishReason],
    total_duration: toNs(head.elapsedMs()),
    load_duration: toNs(head.loadMs),
    prompt_eval_count: usage.promptTokens,
    prompt_eval_duration: toNs(timings.promptMs),
    eval_count: usage.completionTokens,
    eval_duration: toNs(timings.generateMs),
  };
}

const EMPTY = { content: '', thinking: '', toolCalls: [] };

/** The objects of a stream; the last one has `done` and the durations. */
export async function* writeAnswerStream(
  head: AnswerHead,
  events: AsyncIterable<AnswerChunk>,
): AsyncGenerator<object, void, undefined> {
  for await (const { last, ...piece } of readPieces(events)) {
    const hasContent = piece.content !== '' || piece.thinking !== '' || piece.toolCalls.length > 0;
    if (hasContent) yield { ...writePiece(head, piece), done: false };
    if (last !== null) yield { ...writePiece(head, EMPTY), ...writeEnd(head, last) };
  }
}

/** The whole answer as one object. */
export async function writeAnswer(head: AnswerHead, events: AsyncIterable<AnswerChunk>): Promise<object> {
  let [content, thinking] = ['', ''];
  const toolCalls: OllamaToolCall[] = [];
  let end: LastChunk | null = null;
  for await (const piece of readPieces(events)) {
    content += piece.content;
    thinking += piece.thinking;
    toolCalls.push(...piece.toolCalls);
    end = piece.last ?? end;
  }
  return { ...writePiece(head, { content, thinking, toolCalls }), ...writeEnd(head, end!) };
}

/** The answer to a request that only loads or unloads a model. */
export function writeLoaded(head: AnswerHead, reason: 'load' | 'unload'): object {
  return { ...writePiece(head, EMPTY), done: true, done_reason: reason };
}
