import { describe, expect, test } from 'vitest';
import { usedSources } from './used-sources.ts';

const WHALE = 'The blue whale lives in all the great oceans and eats tiny krill by the ton.';
const BILL = 'Invoices come on the first Monday of every month and are due within ten days.';
const texts = [WHALE, BILL];
const asked = 'Where does the blue whale live, and what does it eat?';

describe('[TJ4] a source', () => {
  test('is used if the answer has words that only this source has', () => {
    const answer = 'It lives in all the great oceans and eats tiny krill.';
    expect(usedSources({ answer, asked, texts })).toEqual([true, false]);
    expect(usedSources({ answer, asked, texts: texts.toReversed() })).toEqual([false, true]);
  });

  test('is used if the answer cites its number', () => {
    expect(usedSources({ answer: 'In the sea, see [2].', asked, texts })).toEqual([false, true]);
    expect(usedSources({ answer: 'In the sea [1][2].', asked, texts })).toEqual([true, true]);
    // There is no third; and an index in code is no reference.
    expect(usedSources({ answer: 'In the sea [3].', asked, texts })).toEqual([null, null]);
    expect(usedSources({ answer: 'let x = list[1][2]; return x', asked, texts })).toEqual([false, false]);
    expect(usedSources({ answer: 'Item [2].', asked: 'what is [2]?', texts })).toEqual([null, null]);
  });

  test('is not used because of words in the question', () => {
    const repeated = `${asked} ${WHALE}`;
    const answer = `${WHALE} I do not know more than you said.`;
    expect(usedSources({ answer, asked: repeated, texts })).toEqual([false, false]);
  });

  test('has an unknown use in a very short answer', () => {
    expect(usedSources({ answer: 'Yes.', asked, texts })).toEqual([null, null]);
    expect(usedSources({ answer: '', asked, texts })).toEqual([null, null]);
  });

  test('has an unknown use if two sources share the words or it has two words', () => {
    const answer = 'It lives in all the great oceans and eats tiny krill.';
    const twins = [WHALE, `${WHALE} Really.`, BILL, 'blue whale'];
    expect(usedSources({ answer, asked, texts: twins })).toEqual([null, null, false, null]);
  });

  test('is not used with one shared gram, or a few in a long answer', () => {
    const other = 'People pay on the first Monday after they were asked for it, as a rule.';
    expect(usedSources({ answer: other, asked, texts })).toEqual([false, null]);
    const long = Array.from({ length: 60 }, (_, i) => `word${'abcdefghij'[i % 10]}${'klmnop'[i % 6]}`).join(' ');
    expect(usedSources({ answer: `${long} great oceans and eats tiny`, asked, texts })).toEqual([null, false]);
  });

  test('is detected in scripts without spaces', () => {
    const cjk = ['蓝鲸生活在所有大洋中并吃磷虾', '发票在每月的第一个星期一到达'];
    expect(usedSources({ answer: '它生活在所有大洋中', asked: '鲸在哪里', texts: cjk })).toEqual([true, false]);
  });
});
