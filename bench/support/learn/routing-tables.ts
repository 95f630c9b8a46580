// The results as rows for `printTable`.
import type { Interval } from '../../../src/learning/evaluation/bootstrap.ts';
import { claimOf, type GainTable } from './routing-cross-fit.ts';
import type { LearningCurve, NewsResult } from './routing-feedback.ts';
import type { IntentTable } from './routing-intents.ts';
import type { Power } from './routing-power.ts';
import type { SpeedRow } from './routing-speed.ts';
import type { ScopeTable } from './routing-scope.ts';

const fixed = (value: number, digits = 4): string =>
  Number.isNaN(value) ? '–' : value.toFixed(digits).replace(/^-(?=[0.]*$)/, '');
export const range = ({ low, high }: Interval): string => `${fixed(low)} … ${fixed(high)}`;

export function gainTable(table: GainTable): string[][][] {
  const { title, winners, rows, controls, versus, fixed: candidates, numTest } = table;
  const { isClaimed, why } = claimOf(table);
  return [
    [
      [`${title}, ${numTest} held out`, 'in training', 'area over random', '95 % by request', '95 % by cluster', 'of oracle'], // prettier-ignore
      ...rows.map(({ name, validation, area, byRequest, byCluster, ofOracle }) => [
        name === 'chosen' ? `chosen (${winners.join(', ')})` : name,
        fixed(validation),
        fixed(area),
        range(byRequest),
        range(byCluster),
        fixed(ofOracle, 3),
      ]),
    ],
    [
      ['chosen minus', 'difference', '95 % by request'],
      ...versus.map(({ name, difference, byRequest }) => [name, fixed(difference), range(byRequest)]),
    ],
    [
      ['shuffled outcomes', 'times', 'mean', 'least … most', 'real minus mean', '95 % by request', '95 % by cluster'],
      ...controls.map(({ name, numShuffles, mean, least, most, difference, byRequest, byCluster }) => [
        name,
        String(numShuffles),
        fixed(mean),
        range({ low: least, high: most }),
        fixed(difference),
        range(byRequest),
        range(byCluster),
      ]),
    ],
    [
      ['fixed candidate', 'quality', 'cost'],
      ...candidates.map(({ name, quality, cost }) => [name, fixed(quality), String(cost)]),
    ],
    [[`${title}: ${isClaimed ? 'gain claimed' : 'NO GAIN CLAIMED'}`], [why]],
  ];
}

export function intentTable({ winner, rows, shuffled, numTest }: IntentTable): string[][] {
  return [
    [`intents, ${numTest} held out`, 'validation', 'accuracy', '95 %'],
    ...[...rows, shuffled].map(({ name, validation, accuracy, interval }) => [
      name === winner ? `${name} (chosen)` : name,
      fixed(validation),
      fixed(accuracy),
      range(interval),
    ]),
  ];
}

export const curveTable = (curves: readonly LearningCurve[]): string[][] => [
  [
    'accuracy after feedbacks',
    ...curves[0]!.points.map(({ numFeedbacks }) => String(numFeedbacks)),
    '95 % of the last',
  ],
  ...curves.map(({ name, points, interval }) => [
    name,
    ...points.map(({ accuracy }) => fixed(accuracy, 3)),
    `${fixed(interval.low, 3)} … ${fixed(interval.high, 3)}`,
  ]),
];

export const newsTable = (rows: readonly NewsResult[]): string[][] => [
  [
    'share of one model',
    'before',
    'good feedback until 0.9',
    'then bad feedback until 0.1',
    'control: share after as many neutral ones',
  ],
  ...rows.map(({ name, before, numGood, numBad, afterNeither }) => [
    name,
    fixed(before, 3),
    String(numGood ?? 'never'),
    String(numBad ?? 'never'),
    fixed(afterNeither, 3),
  ]),
];

export const speedTable = (rows: readonly SpeedRow[]): string[][] => [
  ['µs', 'p50', 'p99'],
  ...rows.map(({ name, p50Us, p99Us }) => [name, p50Us.toFixed(1), p99Us.toFixed(1)]),
];

export const powerTable = ({ rows, fitted }: Power, title: string): string[][] => [
  [`${title}: an estimate that explains`, 'area over random', 'by chance'],
  ...rows.map(({ explained, mean, deviation }) => [`${(100 * explained).toFixed(0)} %`, fixed(mean), `± ${fixed(deviation)}`]), // prettier-ignore
  ...fitted.map(({ name, explained }) => [
    `explained by cosine ridge, held out: ${name}`,
    `${(100 * explained).toFixed(1)} %`,
    '',
  ]),
];

export const scopeTable = ({ rows, minSimilarity }: ScopeTable): string[][] => [
  [`out of scope: no rated request as similar as ${fixed(minSimilarity, 2)}`, 'questions', 'rejected', '95 %'],
  ...rows.map(({ name, count, rejected, interval }) => [name, String(count), fixed(rejected, 3), range(interval)]),
];
