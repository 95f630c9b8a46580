import { createLruMap } from '../../memory/common/lru-map.ts';
import { nodeFromRecord } from '../../memory/schemas/node.ts';
import { BANK_SOURCE, type FieldCondition, type MemoryStore } from '../../memory/types.ts';
import { dot, normalized } from '../reasoning-bank/k-means.ts';
import { type Pattern, patternFromNode, type PatternWords } from '../reasoning-bank/pattern.ts';
import { verdictOf } from '../trajectories/verdict.ts';
import { combineClaims, type CombinedClaim, combineForeign } from './combine-claims.ts';
import { fromPatternEvidence, type PatternEvidence, type PeerPattern } from './pattern-evidence.ts';

/** The claim of a peer about a pattern. */
export interface PeerClaim {
  readonly peer: string;
  /** Rated requests, as the peer says. */
  readonly support: number;
  readonly rating: number;
}

/** A pattern near a request, with the claims of all nodes that have it. */
export interface SharedPattern extends Omit<PatternWords, 'id' | 'text'> {
  /** Null: only peers have it; then `support` is 0. */
  readonly id: string | null;
  /** Null: the peers share no texts. */
  readonly text: string | null;
  /** Of all nodes; `confidence`, too. */
  readonly rating: number;
  /** Of this node alone; null: only peers have it. */
  readonly ownConfidence: number | null;
  readonly similarity: number;
  readonly weight: number;
  readonly peers: readonly PeerClaim[];
}

export interface PatternQuestion {
  readonly vector: Float32Array;
  readonly space: string;
}

/** The received patterns of one peer. */
export interface PeerEvidenceOf {
  readonly peer: string;
  readonly patterns: PatternEvidence;
}

/** Patterns from this cosine are the same one: the bank merges from 0.95, and vectors are rounded. */
const SAME_FROM = 0.9;
/** Own patterns beyond those asked for: a peer's may belong to one of them. */
const NUM_SPARE = 16;
const MAX_TENANTS = 16;
const OURS: FieldCondition = { field: 'source', is: '=', value: BANK_SOURCE };

type Received = readonly (Pick<PeerEvidenceOf, 'peer'> & { readonly space: string; readonly patterns: readonly PeerPattern[] })[]; // prettier-ignore
interface Claim {
  readonly peer: string;
  readonly pattern: PeerPattern;
  readonly similarity: number;
}

/** Searches own patterns together with those of peers, which stay apart from them. */
export function createPeerPatterns(
  store: MemoryStore,
  { read, revision }: { read(tenant: string): Promise<readonly PeerEvidenceOf[]>; revision(tenant: string): Promise<string> }, // prettier-ignore
) {
  const cache = createLruMap<{ readonly revision: string; readonly received: Received }>(MAX_TENANTS);

  async function receivedOf(tenant: string): Promise<Received> {
    const now = await revision(tenant);
    const cached = cache.get(tenant);
    if (cached?.revision === now) return cached.received;
    const all = now === '' ? [] : await read(tenant);
    const received = all.map(({ peer, patterns }) => ({ peer, space: patterns.space, patterns: fromPatternEvidence(patterns) })); // prettier-ignore
    cache.set(tenant, { revision: now, received });
    return received;
  }

  /** The best patterns by similarity × confidence; null: no peer has patterns of this space. */
  return async (tenant: string, question: PatternQuestion, k: number): Promise<readonly SharedPattern[] | null> => {
    const unit = normalized(question.vector);
    const claims = (await receivedOf(tenant)).flatMap(({ peer, space, patterns }) =>
      space !== question.space
        ? []
        : patterns
            .filter(({ vector }) => vector.length === unit.length)
            .map((pattern): Claim => ({ peer, pattern, similarity: dot(unit, pattern.vector) })),
    );
    if (claims.length === 0) return null;
    const near = await store.nearest(tenant, { ...question, kinds: ['pattern'], k: k + NUM_SPARE, filter: { fields: [OURS] } }); // prettier-ignore
    const left = new Set(claims);
    const own = near.map(({ record, similarity }) => {
      const pattern = patternFromNode(nodeFromRecord(record));
      return ownPattern(pattern, similarity, takeSame(normalized(pattern.embedding), left));
    });
    const foreign: SharedPattern[] = [];
    const byNearest = claims.toSorted((a, b) => b.similarity - a.similarity);
    for (const claim of byNearest) {
      if (foreign.length === k) break;
      if (!left.has(claim)) continue;
      foreign.push(foreignPattern(claim.similarity, takeSame(claim.pattern.vector, left)));
    }
    return [...own, ...foreign].sort((a, b) => b.weight - a.weight).slice(0, k);
  };
}

/** Takes the claims about the same pattern; of each peer only the most similar counts. */
function takeSame(vector: Float32Array, left: Set<Claim>): Claim[] {
  const best = new Map<string, { readonly claim: Claim; readonly cosine: number }>();
  for (const claim of left) {
    const cosine = dot(vector, claim.pattern.vector);
    if (cosine < SAME_FROM) continue;
    left.delete(claim);
    if (cosine > (best.get(claim.peer)?.cosine ?? -1)) best.set(claim.peer, { claim, cosine });
  }
  return [...best.values()].map(({ claim }) => claim);
}

const claimOf = ({ peer, pattern: { quality } }: Claim): PeerClaim => ({
  peer,
  support: quality.count,
  rating: quality.mean,
});

const withClaims = (similarity: number, claims: readonly Claim[], { rating, confidence }: CombinedClaim) => ({
  rating,
  confidence,
  similarity,
  weight: similarity * confidence,
  peers: claims.map(claimOf),
});

function ownPattern(pattern: Pattern, similarity: number, claims: readonly Claim[]): SharedPattern {
  const { embedding: _embedding, space: _space, ...words } = pattern;
  const combined = combineClaims(pattern.quality, pattern.confidence, claims.map((one) => one.pattern.quality)); // prettier-ignore
  return { ...words, ownConfidence: pattern.confidence, ...withClaims(similarity, claims, combined) };
}

function foreignPattern(similarity: number, claims: readonly Claim[]): SharedPattern {
  const combined = combineForeign(claims.map((one) => one.pattern.quality));
  return {
    id: null,
    text: claims.find(({ pattern }) => pattern.text !== null)?.pattern.text ?? null,
    verdict: verdictOf(combined.rating),
    support: 0,
    numUses: 0,
    lastUsedMs: 0,
    quality: { count: 0, mean: combined.rating, variance: 0 },
    models: {},
    recommendedModel: null,
    ownConfidence: null,
    ...withClaims(similarity, claims, combined),
  };
}
