import { RuvLLMError } from '../core/errors.ts';
import { instanceOption, integerOption, optional, resolveOptions, type OptionReader } from '../core/options.ts';
import { chooseSlabPages } from './slab-size.ts';
import type { PagePoolOptions, PageTier } from './types.ts';

export interface TierLayout {
  readonly pageBytes: number;
  /** Pages in a whole slab; 0: the tier does not exist. */
  readonly slabPages: number;
  indexOf(slabId: number, slot: number): number;
  slabOf(index: number): number;
  slotOf(index: number): number;
}

/**
 * The region as slabs: whole ones 0 … numSlabs - 1, then a shorter tail slab with the id numSlabs if the pages are not a multiple.
 * The tail holds only float pages, so that all other slabs are interchangeable and checking for space is counting slabs.
 */
export interface SlabLayout {
  readonly budgetBytes: number;
  readonly slabBytes: number;
  readonly numSlabs: number;
  /** Float pages of the tail slab; 0: none. */
  readonly tailPages: number;
  readonly tiers: Readonly<Record<PageTier, TierLayout>>;
}

/** 2^26 pages of 16 tokens: a billion tokens, far beyond any arena. */
const MAX_PAGES = 2 ** 26;
/** Pages of either tier per slab, which bounds the search for the emptiest slab. */
const MAX_SLAB_PAGES = 2 ** 20;

function required(max: number): OptionReader<number> {
  const read = integerOption(1, 1, max);
  return (value, name) => read(value ?? null, name);
}

/** Validates the options of a pool and divides its region into slabs. */
export function createSlabLayout(given: PagePoolOptions): SlabLayout {
  const options = resolveOptions<
    Omit<Required<PagePoolOptions>, 'slabPages' | 'onFree'> & {
      slabPages: number | null;
      onFree: PagePoolOptions['onFree'] | null;
    }
  >('page pool', given, {
    numPages: required(MAX_PAGES),
    pageBytes: required(Number.MAX_SAFE_INTEGER),
    packed: optional((value) =>
      resolveOptions('packed pages', value as object, {
        pageBytes: required(Number.MAX_SAFE_INTEGER),
        unitBytes: required(Number.MAX_SAFE_INTEGER),
      }),
    ),
    slabPages: optional(required(Math.min(MAX_SLAB_PAGES, Number(given.numPages) || 1))),
    copyPage: instanceOption('a function', (value) => typeof value === 'function') as OptionReader<
      PagePoolOptions['copyPage']
    >,
    onFree: optional(
      instanceOption('a function', (value) => typeof value === 'function') as OptionReader<
        NonNullable<PagePoolOptions['onFree']>
      >,
    ),
  });
  const { numPages, pageBytes, packed } = options;
  const budgetBytes = numPages * pageBytes;
  if (!Number.isSafeInteger(budgetBytes)) {
    throw new RuvLLMError('invalid_option', `a page pool of ${numPages} pages of ${pageBytes} bytes is too large`);
  }
  if (packed !== null) checkPacked(pageBytes, packed);
  const slabPages = options.slabPages ?? chooseSlabPages(numPages, pageBytes, packed?.pageBytes ?? null);
  const slabBytes = slabPages * pageBytes;
  if (packed !== null && slabBytes / packed.pageBytes > MAX_SLAB_PAGES) {
    throw new RuvLLMError(
      'invalid_option',
      `a slab of ${slabBytes} bytes would hold more than ${MAX_SLAB_PAGES} packed pages of ${packed.pageBytes} bytes`,
    );
  }
  return {
    budgetBytes,
    slabBytes,
    numSlabs: Math.floor(numPages / slabPages),
    tailPages: numPages % slabPages,
    tiers: {
      float: tierLayout(slabBytes, pageBytes, pageBytes),
      packed: packed === null ? NO_TIER : tierLayout(slabBytes, packed.pageBytes, packed.unitBytes),
    },
  };
}

function checkPacked(pageBytes: number, packed: NonNullable<PagePoolOptions['packed']>): void {
  const { pageBytes: packedBytes, unitBytes } = packed;
  if (packedBytes > pageBytes) {
    throw new RuvLLMError('invalid_option', `packed pages of ${packedBytes} bytes are larger than ${pageBytes} bytes`);
  }
  if (packedBytes % unitBytes !== 0 || pageBytes % unitBytes !== 0) {
    throw new RuvLLMError(
      'invalid_option',
      `pages of ${pageBytes} bytes and packed pages of ${packedBytes} bytes are not both multiples of ${unitBytes} bytes`,
    );
  }
}

function tierLayout(slabBytes: number, pageBytes: number, unitBytes: number): TierLayout {
  const slabUnits = slabBytes / unitBytes;
  const pageUnits = pageBytes / unitBytes;
  return {
    pageBytes,
    slabPages: Math.floor(slabBytes / pageBytes),
    indexOf: (slabId, slot) => slabId * slabUnits + slot * pageUnits,
    slabOf: (index) => Math.floor(index / slabUnits),
    slotOf: (index) => (index % slabUnits) / pageUnits,
  };
}

const NO_TIER: TierLayout = { pageBytes: 0, slabPages: 0, indexOf: () => NaN, slabOf: () => NaN, slotOf: () => NaN };
