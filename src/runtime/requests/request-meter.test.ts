import { expect, test } from 'vitest';
import type { AnswerChunk } from './answer-chunks.ts';
import { createRequestMeter, type MeterSinks } from './request-meter.ts';

function setUp() {
  const seen: string[] = [];
  const sinks: MeterSinks = {
    firstToken: (model, ms) => void seen.push(`${model} first ${ms}`),
    interToken: (model, ms) => void seen.push(`${model} inter ${ms}`),
    promptTokens: (model, computed) => void seen.push(`${model} prompt ${computed}`),
    generatedTokens: (model, count) => void seen.push(`${model} generated ${count}`),
    finished: (model, { choice }) => void seen.push(`${model} finished ${choice}`),
    unfinished: (model) => void seen.push(`${model} unfinished`),
  };
  const meter = createRequestMeter(sinks);
  meter.serve('m');
  return { meter, seen };
}

const token = (elapsedMs: number, cachedTokens = 4) => ({ elapsedMs, promptTokens: 10, cachedTokens }) as never;
const end = (choice: number, completionTokens: number): AnswerChunk => {
  const usage = { promptTokens: 10, cachedTokens: 4, completionTokens };
  return { choice, finishReason: 'stop', usage, timings: { firstTokenMs: 30, generateMs: 60 } } as never;
};

test('tokens count one by one, each answer with its first one and the times between', () => {
  const { meter, seen } = setUp();
  expect([meter.numTokens, meter.promptTokens, meter.cachedTokens, meter.firstTokenMs]).toEqual([0, null, null, null]);
  meter.prompt(10);
  meter.prompt(11);
  meter.token(0, token(5));
  meter.token(1, token(7, 6));
  meter.token(0, token(9));
  expect([meter.numTokens, meter.promptTokens, meter.cachedTokens, meter.firstTokenMs]).toEqual([3, 10, 4, 5]);
  meter.onEvent({ finishReason: null } as never);
  meter.onEvent(end(0, 2));
  void meter.onEnd(null);
  expect(seen).toEqual([
    'm generated 1',
    'm first 5',
    'm prompt 6',
    'm generated 1',
    'm first 7',
    'm prompt 4',
    'm generated 1',
    'm inter 4',
    'm finished 0',
  ]);
  expect(meter.numTokens).toBe(3);
});

test('an answer without times of its tokens counts with its means', () => {
  const { meter, seen } = setUp();
  meter.onEvent(end(0, 4));
  meter.onEvent(end(1, 1));
  void meter.onEnd(null);
  expect(seen).toEqual([
    'm finished 0',
    'm first 30',
    'm inter 20',
    'm prompt 6',
    'm generated 4',
    'm finished 1',
    'm first 30',
    'm prompt 6',
    'm generated 1',
  ]);
  expect(meter.numTokens).toBe(5);
});

test('a request without the end of any answer is unfinished', () => {
  const { meter, seen } = setUp();
  void meter.onEnd(new Error('gone'));
  expect(seen).toEqual(['m unfinished']);
});
