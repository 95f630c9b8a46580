import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import { readSuiteGroups, SUITE_DRAFTS, type SuiteGroup } from '../../../test/support/schema-suite.ts';
import { createMemorySource } from '../../core/byte-source.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { openGguf } from '../../gguf/index.ts';
import { createTokenizer } from '../../tokenizers/index.ts';
import { compileGrammar } from './compile.ts';
import { createTokenMatcher } from './token-matcher.ts';
import { createTokenTable } from './token-table.ts';
import { createTokenVocabulary } from './token-vocabulary.ts';
import type { CompiledGrammar, GrammarState } from './types.ts';

const shared = join(import.meta.dirname, '../../../../shared/suites');
const suite = join(shared, 'json-schema-test-suite/tests');
const vocabularyFile = join(shared, 'tokenizers/ggml-vocab-phi-3.gguf');
const hasSuite = existsSync(suite);
const hasVocabulary = existsSync(vocabularyFile);
if (!hasSuite) console.log(`skipped: no JSON Schema test suite at ${suite}`);
if (!hasVocabulary) console.log(`skipped: no vocabulary at ${vocabularyFile}`);

const encoder = new TextEncoder();

function takesBytes(grammar: CompiledGrammar, text: string): boolean {
  let state: GrammarState | null = grammar.start;
  grammar.beginToken();
  for (const byte of encoder.encode(text)) {
    state = grammar.step(state, byte);
    if (state === null) return false;
  }
  return grammar.isComplete(state);
}

interface Outcome {
  readonly numSchemas: number;
  readonly accepted: { readonly grammar: CompiledGrammar; readonly where: string; readonly group: SuiteGroup }[];
  readonly refused: Map<string, number>;
  readonly wrong: string[];
}

function runGroups(groups: readonly { file: string; group: SuiteGroup }[], assertFormats: boolean): Outcome {
  const outcome: Outcome = { numSchemas: groups.length, accepted: [], refused: new Map(), wrong: [] };
  for (const { file, group } of groups) {
    const where = `${file}: ${group.description}`;
    let grammar: CompiledGrammar;
    try {
      grammar = compileGrammar({ type: 'json_schema', schema: group.schema, assertFormats });
    } catch (error) {
      if (!(error instanceof RuvLLMError)) throw error;
      const isEmpty = error.message.endsWith('no value satisfies it');
      if (isEmpty && group.tests.some(({ valid }) => valid)) outcome.wrong.push(`${where}: called unsatisfiable`);
      const keyword = isEmpty
        ? 'no value satisfies the schema'
        : `${String(error.data.keyword)}: ${String(error.data.reason)}`;
      const reason = keyword.replaceAll(/".*?"/g, '…');
      outcome.refused.set(reason, (outcome.refused.get(reason) ?? 0) + 1);
      continue;
    }
    outcome.accepted.push({ grammar, where, group });
    for (const { description, data, valid } of group.tests) {
      for (const indent of [0, 2]) {
        const text = JSON.stringify(data, null, indent);
        if (takesBytes(grammar, text) !== valid) outcome.wrong.push(`${where}: ${description}: ${text}`);
      }
    }
  }
  return outcome;
}

const main = hasSuite
  ? runGroups(
      SUITE_DRAFTS.flatMap((draft) => readSuiteGroups(suite, draft, '')),
      false,
    )
  : null;

test.skipIf(!hasSuite)('[G4] drafts 7 and 2020-12: every accepted schema accepts exactly its valid instances', () => {
  const { numSchemas, accepted, refused, wrong } = main!;
  const share = accepted.length / numSchemas;
  console.log(
    `JSON Schema suite: ${accepted.length} of ${numSchemas} schemas accepted (${(100 * share).toFixed(1)} %)`,
  );
  for (const [reason, count] of [...refused].sort((a, b) => b[1] - a[1])) console.log(`  refused ${count}: ${reason}`);
  expect(wrong).toEqual([]);
  expect(share).toBeGreaterThanOrEqual(0.85);
});

test.skipIf(!hasSuite || !hasVocabulary)(
  '[G5] token by token: the mask has every token of a valid instance, including the end',
  () => {
    const { metadata } = openGguf(createMemorySource(readFileSync(vocabularyFile), 'phi-3'));
    const tokenizer = createTokenizer(metadata);
    const table = createTokenTable(createTokenVocabulary(tokenizer));
    const [end] = table.vocabulary.endIds as [number];
    const wrong: string[] = [];
    const has = (mask: Uint32Array, id: number): boolean => ((mask[id >>> 5]! >>> (id & 31)) & 1) === 1;
    let numTokens = 0;
    // Masks of a whole vocabulary are slow: the short form has every fourth schema. [G4] covers all of them by bytes.
    const step = campaign({ short: 4, long: 1 });
    for (const { grammar, where, group } of main!.accepted.filter((_, i) => i % step === 0)) {
      for (const { description, data, valid } of group.tests) {
        const text = JSON.stringify(data, null, valid ? 2 : 0);
        const matcher = createTokenMatcher(grammar, table, { cacheBytes: 4 << 20 });
        const ids = [...tokenizer.encode(text, { isContinuation: true }), end];
        const taken = ids.findIndex((id) => {
          numTokens++;
          const isAllowed = has(matcher.mask(), id);
          if (matcher.clone().accept(id) !== isAllowed)
            wrong.push(`${where}: mask and accept differ at token ${id} of ${text}`);
          return !isAllowed || !matcher.accept(id);
        });
        if (taken < 0 !== valid) wrong.push(`${where}: ${description}: ${text} at token ${taken}`);
      }
    }
    console.log(`JSON Schema suite: ${numTokens} tokens checked`);
    expect(wrong).toEqual([]);
  },
);

test.skipIf(!hasSuite)('[G6] enforced formats agree with the optional tests of the suite', () => {
  const names = new Set([
    'date',
    'time',
    'date-time',
    'duration',
    'uuid',
    'ipv4',
    'ipv6',
    'email',
    'uri',
    'uri-reference',
    'iri',
    'iri-reference',
    'uri-template',
    'json-pointer',
    'relative-json-pointer',
  ]);
  for (const draft of SUITE_DRAFTS) {
    const groups = readSuiteGroups(suite, draft, 'optional/format/').filter(({ file }) =>
      names.has(/([^/]*)\.json$/.exec(file)![1]!),
    );
    const { accepted, numSchemas, wrong } = runGroups(groups, true);
    expect(wrong).toEqual([]);
    expect(accepted.length).toBe(numSchemas);
    expect(numSchemas).toBeGreaterThan(12);
  }
});

test.skipIf(!hasSuite)('[G7] optional tests: patterns, large numbers, identifiers', () => {
  const isWanted = (file: string): boolean =>
    /(ecmascript-regex|non-bmp-regex|bignum|float-overflow|anchor|id|unknownKeyword|no-schema|dependencies-compatibility|refOfUnknownKeyword)\.json$/.test(
      file,
    );
  const groups = SUITE_DRAFTS.flatMap((draft) => readSuiteGroups(suite, draft, 'optional/')).filter(({ file }) =>
    isWanted(file),
  );
  const { accepted, wrong } = runGroups(groups, false);
  expect(wrong).toEqual([]);
  expect(accepted.length).toBeGreaterThan(60);
});
