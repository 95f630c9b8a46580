import { RuvLLMError } from '../../core/errors.ts';
import type { MemoryServices } from '../common/services.ts';
import type { EmbeddedText } from '../search/embed-text.ts';
import { contextOf } from '../search/follow-up.ts';
import type { PackedContext, PackedSource } from '../search/pack.ts';
import { recordText } from '../search/record-text.ts';
import { BANK_SOURCE, type FieldCondition, type MemoryRecord, type MemoryStore, type NearRecord } from '../types.ts';
import { scopeConditions } from './episodes.ts';
import { type Candidate, preferNewest, scoreCandidates } from './rank.ts';
import { factLine, formFor, noteLine, passageLine, patternLine, type RecallForm, type RecallLine } from './render.ts';
import type { AgentScope, Speaker } from './types.ts';
import type { WorkingMemory } from './working.ts';

export const TIERS = ['working', 'semantic', 'episodic', 'procedural'] as const;
export type Tier = (typeof TIERS)[number];

/** A question to the memory of an agent. */
export interface AgentQuery {
  /** The question. */
  readonly text: string;
  /** Earlier messages of the user, for a follow-up question. Default: none. */
  readonly turns?: readonly string[];
  /** Most tokens of the text. */
  readonly tokenBudget: number;
  /** Default: one token per four characters. */
  readonly countTokens?: (text: string) => number;
  /** The session in progress, whose notes are recalled. Default: none. */
  readonly sessionId?: string | null;
  /** Whether the prompt has the messages of this session already, so that they are left out. Default false. */
  readonly hasHistory?: boolean;
  /** Number of the first source. Default 1. */
  readonly firstNumber?: number;
}

/** A recalled source with its tier and origin. */
export interface AgentSource extends PackedSource {
  readonly tier: Tier;
  /** Null: a note or a pattern. */
  readonly speaker: Speaker | null;
  readonly saidMs: number | null;
}

/** The recalled text, with the sources of its lines. */
export interface AgentContext extends PackedContext {
  readonly sources: readonly AgentSource[];
}

export type RecallTiers = (scope: AgentScope, query: AgentQuery) => Promise<AgentContext>;

/** A pattern of this node or of others. */
export interface RecalledPattern {
  /** Null: only other nodes have it. */
  readonly id: string | null;
  /** Null: the other nodes share no texts. */
  readonly text: string | null;
  readonly similarity: number;
  /** Mean quality, combined from all nodes that have it. */
  readonly rating: number;
  /** Own rated requests. */
  readonly support: number;
  readonly peers: readonly { readonly peer: string; readonly support: number }[];
}

/** Patterns near a question, also of other nodes; null: only the tenant's own exist. */
export type SearchPatterns = (
  tenant: string,
  question: EmbeddedText,
  k: number,
) => Promise<readonly RecalledPattern[] | null>;

export interface RecallContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly working: WorkingMemory;
  embedQuestion(text: string, turns: readonly string[]): Promise<EmbeddedText | null>;
  /** In the space of the reasoning bank. */
  embedRequest(text: string): Promise<EmbeddedText | null>;
  /** Null: patterns are those of the tenant. */
  patterns(): SearchPatterns | null;
}

/** Records of each search. */
const NUM_CANDIDATES = 192;
/** The best passages, whose newer versions are searched, and how many of each. */
const NUM_FOLLOWED = 8;
const NUM_NEWER = 16;
const NUM_PATTERNS = 4;
const MIN_PATTERN_SIMILARITY = 0.5;
/** Most of the budget that a tier may take; episodes get the rest. */
const SHARES: Readonly<Record<Tier, number>> = { working: 0.3, semantic: 0.5, procedural: 0.15, episodic: 1 };
const PATTERNS: FieldCondition = { field: 'source', is: '=', value: BANK_SOURCE };

interface Item extends RecallLine {
  /** Null: a note, which is no source. */
  readonly id: string | null;
  readonly kind: MemoryRecord['kind'];
  readonly tier: Tier;
  readonly speaker: Speaker | null;
  readonly saidMs: number | null;
}

/** Mixes the tiers under one budget: notes of the task, facts, patterns, then what was said; the newest first in each. */
export function createRecall(context: RecallContext): RecallTiers {
  const { store, services, working, embedQuestion, embedRequest } = context;

  async function candidates(scope: AgentScope, query: AgentQuery, question: EmbeddedText | null): Promise<Candidate[]> {
    const fields = scopeConditions(scope);
    const { sessionId = null, hasHistory = false, turns = [] } = query;
    const common = { kinds: ['fact', 'agent-step'], k: NUM_CANDIDATES, filter: { fields }, withVectors: true } as const;
    const context = contextOf(query.text, turns);
    const [near, matches] = await Promise.all([
      question === null ? [] : store.nearest(scope.tenant, { ...question, ...common }),
      store.match(scope.tenant, { text: query.text, ...(context === '' ? {} : { context }), ...common }),
    ]);
    const nowMs = services.now();
    const found = scoreCandidates(near, matches, question, query.text, nowMs);
    const newer = await Promise.all(found.slice(0, NUM_FOLLOWED).map((one) => newerThan(scope, one)));
    return preferNewest(found, newer, nowMs).filter(
      ({ passage }) => !hasHistory || passage?.sessionId !== sessionId || sessionId === null,
    );
  }

  /** Messages near a passage that were said after it: a changed value may share no word with the question. */
  async function newerThan(
    scope: AgentScope,
    { passage, vector, space, saidMs }: Candidate,
  ): Promise<readonly NearRecord[]> {
    if (passage === null || vector === null) return [];
    const fields: FieldCondition[] = [...scopeConditions(scope), { field: 'speaker', is: '=', value: passage.speaker }];
    const filter = { fields, createdFromMs: saidMs + 1 };
    return store.nearest(scope.tenant, { vector, space: space!, kinds: ['agent-step'], k: NUM_NEWER, filter });
  }

  /** The reasoning bank's patterns for similar requests. */
  async function patterns({ tenant }: AgentScope, text: string): Promise<readonly Item[]> {
    const question = await embedRequest(text);
    if (question === null) return [];
    const shared = (await context.patterns()?.(tenant, question, NUM_PATTERNS)) ?? null;
    if (shared !== null) {
      const near = shared.filter(({ similarity }) => similarity >= MIN_PATTERN_SIMILARITY);
      // Own patterns first: a peer must not take their place.
      return near.toSorted((a, b) => Number(a.id === null) - Number(b.id === null)).flatMap(toPatternItem);
    }
    const near = await store.nearest(tenant, {
      ...question,
      kinds: ['pattern'],
      k: NUM_PATTERNS,
      filter: { fields: [PATTERNS] },
      withVectors: false,
    });
    return near
      .filter(({ similarity }) => similarity >= MIN_PATTERN_SIMILARITY)
      .map(({ record }) => {
        const { metadata } = record.body as { readonly metadata?: { readonly support?: number } };
        const quality = record.fields['quality'] as number | null;
        const line = patternLine(recordText(record), quality, metadata?.support ?? null);
        return {
          id: record.id,
          kind: record.kind,
          tier: 'procedural',
          heading: null,
          line,
          speaker: null,
          saidMs: null,
        };
      });
  }

  return async (scope, query) => {
    const { text, turns = [], tokenBudget, sessionId = null } = query;
    if (text.trim() === '') throw new RuvLLMError('invalid_option', 'recall requires a text', { data: { option: 'text' } }); // prettier-ignore
    const question = await embedQuestion(text, turns);
    const [notes, ranked, known] = await Promise.all([
      sessionId === null ? [] : working.notes(scope, sessionId),
      candidates(scope, query, question),
      patterns(scope, text),
    ]);
    const items: Item[] = [
      // The newest first: they must not lose their place to older ones.
      ...notes.toReversed().map((note): Item => ({ id: null, kind: 'state', tier: 'working', heading: null, line: noteLine(note), speaker: null, saidMs: note.notedMs })), // prettier-ignore
      ...ranked.map((one) => toItem(one, formFor(tokenBudget))),
      ...known,
    ];
    return pack(items, { ...query, tokenBudget });
  };
}

function toPatternItem({ id, text, rating, support, peers }: RecalledPattern): Item[] {
  if (text === null) return [];
  const line = patternLine(text, rating, support, peers);
  return [{ id, kind: 'pattern', tier: 'procedural', heading: null, line, speaker: null, saidMs: null }];
}

function toItem({ fact, passage, saidMs }: Candidate, form: RecallForm): Item {
  if (fact !== null) return { id: fact.id, kind: 'fact', tier: 'semantic', ...factLine(fact, form), speaker: fact.speaker, saidMs }; // prettier-ignore
  const { id, speaker } = passage!;
  return { id, kind: 'agent-step', tier: 'episodic', ...passageLine(passage!, form), speaker, saidMs };
}

/** The newest of each tier first; those that follow each other under one heading have it once. */
function render(shown: readonly Item[], { intro }: RecallForm, firstNumber: number): string {
  let number = firstNumber;
  let above: string | null = null;
  const lines = shown.map(({ id, heading, line }) => {
    const own = heading === null || heading === above ? '' : `${heading}\n`;
    above = heading;
    return `${own}${id === null ? '' : `[${number++}] `}${line}\n`;
  });
  return lines.length === 0 ? '' : `${intro}${lines.join('')}`;
}

const inOrder = (items: readonly Item[]): Item[] =>
  TIERS.flatMap((tier) => items.filter((item) => item.tier === tier).sort((a, b) => (b.saidMs ?? 0) - (a.saidMs ?? 0)));

/** Takes the best of each tier within its share, then the best episodes. */
function pack(items: readonly Item[], query: AgentQuery): AgentContext {
  const { tokenBudget, countTokens = estimateTokens, firstNumber = 1 } = query;
  const form = formFor(tokenBudget);
  let shown: Item[] = [];
  let numUsed = 0;
  let numLeftOut = 0;
  for (const tier of TIERS.toSorted((a, b) => SHARES[a] - SHARES[b])) {
    const limit = Math.min(tokenBudget, (shown.length === 0 ? countTokens(form.intro) : numUsed) + Math.floor(tokenBudget * SHARES[tier])); // prettier-ignore
    for (const item of items) {
      if (item.tier !== tier) continue;
      // The whole text is counted, because tokens of lines do not add up to it; not for items that cannot fit.
      const cannotFit = numUsed + countTokens(item.line) - 1 > limit;
      const together = cannotFit ? [] : inOrder([...shown, item]);
      const numTokens = cannotFit ? Infinity : countTokens(render(together, form, firstNumber));
      if (numTokens > limit) {
        numLeftOut++;
        continue;
      }
      [shown, numUsed] = [together, numTokens];
    }
  }
  const text = render(shown, form, firstNumber);
  return {
    text,
    numTokens: numUsed,
    numLeftOut,
    sources: shown.filter(isSource).map(({ id, kind, tier, speaker, saidMs, line }, i) => ({
      number: firstNumber + i,
      id,
      kind,
      tier,
      speaker,
      saidMs,
      numTokens: countTokens(line),
      position: null,
      isCut: false,
    })),
  };
}

const isSource = (item: Item): item is Item & { readonly id: string } => item.id !== null;
const estimateTokens = (text: string): number => Math.ceil(text.length / 4);
