// What adapters learn from feedback on a small real model, their cost elsewhere, and what EWC preserves; with controls.
import { bootstrapPercentile } from '../../../src/learning/evaluation/bootstrap.ts';
import { measureEwc } from './ewc.ts';
import type { Findings } from './findings.ts';
import type { LearnModel } from './learn-model.ts';
import { measureLora } from './lora.ts';
import { timeMicroLora } from './micro-lora-speed.ts';
import { measureMicroLora } from './micro-lora.ts';
import { type Interval, show } from './statistics.ts';
import { printTable } from '../report.ts';

export interface AdapterPart {
  (
    model: LearnModel,
    findings: Findings,
    options: { readonly numSeeds: number; readonly isQuick: boolean; readonly rates: readonly number[] },
  ): Promise<void>;
}

const ranged = ({ low, high }: { low: number; high: number }, digits = 3): string => `${low.toFixed(digits)} … ${high.toFixed(digits)}`; // prettier-ignore
const minus = ({ mean, low, high }: Interval): Interval => ({ mean: -mean, low: -high, high: -low });

const MICRO = { numCorrections: 96, numHeldOut: 40, seed: 1 } as const;

export const ADAPTER_PARTS: Readonly<Record<string, AdapterPart>> = {
  async micro(model, { figures, rows: results }, { isQuick, rates }) {
    const rows = [['rate', 'topic', 'own texts', 'topic, shuffled labels', 'corrections until learned', 'not in 50']];
    for (const learningRate of rates) {
      const { accepted, shuffledLabels, untilSaid } = await measureMicroLora(model, { ...MICRO, learningRate, isQuick: true }); // prettier-ignore
      rows.push([
        String(learningRate),
        show(accepted.topic),
        show(accepted.ownTexts),
        show(shuffledLabels.topic),
        `${untilSaid.p50} (p90 ${untilSaid.p90})`,
        String(untilSaid.numNever),
      ]);
    }
    if (rates.length > 0) printTable(rows);
    const result = await measureMicroLora(model, { ...MICRO, isQuick });
    const { before, accepted, shuffledLabels, margin, updateMs, isUnchangedWithoutFeedback } = result;
    const row = (value: Interval, control: string) => ({ value: value.mean.toFixed(3), interval: ranged(value), control }); // prettier-ignore
    const nothing = `no feedback: ${isUnchangedWithoutFeedback ? 'unchanged bits' : 'CHANGED'}`;
    printTable([
      ['MicroLoRA, 96 corrections', 'before', 'change of the loss', 'shuffled labels'],
      ['held-out texts of the topic', before.topic.toFixed(3), show(accepted.topic), show(shuffledLabels.topic)],
      [
        'texts sampled from the model',
        before.ownTexts.toFixed(3),
        show(accepted.ownTexts),
        show(shuffledLabels.ownTexts),
      ],
      ['another topic', before.otherTopic.toFixed(3), show(accepted.otherTopic), show(shuffledLabels.otherTopic)],
    ]);
    if (margin !== null) {
      printTable([
        ['right over wrong facts, held out', 'change of the margin'],
        ['true verdicts', show(margin.trueVerdicts)],
        ['random verdicts', show(margin.shuffledVerdicts)],
      ]);
    }
    printTable([
      ['corrections of one short answer until learned', 'p50', 'p90', 'not in 50'],
      ['of 10', String(result.untilSaid.p50), String(result.untilSaid.p90), String(result.untilSaid.numNever)],
    ]);
    figures['microlora_corrections_p50'] = result.untilSaid.p50;
    figures['microlora_loss_drop'] = -accepted.topic.mean;
    figures['microlora_loss_elsewhere'] = accepted.ownTexts.mean;
    figures['microlora_unchanged_without_feedback'] = result.isUnchangedWithoutFeedback;
    figures['instant_p50_ms'] = updateMs.p50;
    results['microlora_loss_drop'] = row(
      minus(accepted.topic),
      `shuffled labels: ${show(minus(shuffledLabels.topic))}`,
    );
    results['microlora_loss_elsewhere'] = row(
      accepted.ownTexts,
      `shuffled labels: ${show(shuffledLabels.ownTexts)}; ${nothing}`,
    );
    const instant = bootstrapPercentile(updateMs.times, 0.5);
    results['instant_p50_ms'] = { value: updateMs.p50.toFixed(3), interval: ranged(instant), control: '–' };
    if (!isUnchangedWithoutFeedback) throw new Error('losses changed without any feedback');
  },
  async lora(model, { figures }, { isQuick }) {
    const rows = [['LoRA', 'topic', 'own texts', 'topic, shuffled answers', 'seconds', 'tokens/s']];
    const fixed = { numCorrections: 48, numHeldOut: 40, seed: 1, numLayers: 2, numEpochs: 3, learningRate: 1e-3 };
    const all = [
      { rank: 4, numReplayed: 0 },
      { rank: 8, numReplayed: 0 },
      { rank: 8, numReplayed: 16 },
    ];
    for (const { rank, numReplayed } of isQuick ? all.slice(0, 1) : all) {
      const result = await measureLora(model, { ...fixed, rank, numReplayed });
      rows.push([
        `rank ${rank}, ${numReplayed} sampled texts replayed`,
        show(result.topic),
        show(result.ownTexts),
        show(result.shuffledTopic),
        result.trainSeconds.toFixed(1),
        result.tokensPerSecond.toFixed(0),
      ]);
      figures[`lora_r${rank}_replay${numReplayed}_loss_drop`] = -result.topic.mean;
      figures[`lora_r${rank}_replay${numReplayed}_loss_elsewhere`] = result.ownTexts.mean;
    }
    printTable(rows);
  },
  async ewc(model, { figures, rows }, { numSeeds }) {
    const seeds = Array.from({ length: numSeeds }, (_, i) => i + 1);
    const result = await measureEwc(model, {
      seeds,
      rank: 8,
      numLayers: 2,
      numTexts: 36,
      numHeldOut: 20,
      learningRate: 1e-3,
      lambda: 2000,
      stepsPerLook: 6,
      numLooks: 5,
    });
    printTable([
      ['seed', 'A before', 'A learned', 'loss of B, equal', 'A forgotten: none', 'EWC', 'shuffled Fisher'],
      ...result.seeds.map(({ seed, untaught, afterA, equalB, forgetting }) =>
        [seed, untaught.a, afterA.a, equalB, forgetting.none, forgetting.ewc, forgetting.shuffledFisher].map(
          (value, i) => (i === 0 ? String(value) : value.toFixed(3)),
        ),
      ),
    ]);
    const { saved, savedOverShuffled, ratio, ratios, controlRatio, controlRatios } = result;
    printTable([
      ['of A at equal B', 'forgetting without EWC / with it', '95 % over seeds', 'less forgotten, 95 %'],
      ['EWC', ratio.toFixed(2), ranged(ratios, 2), show(saved)],
      [
        'shuffled Fisher',
        controlRatio.toFixed(2),
        ranged(controlRatios, 2),
        `EWC beyond it: ${show(savedOverShuffled)}`,
      ],
    ]);
    figures['ewc_forgetting_ratio'] = ratio;
    figures['ewc_control_ratio'] = controlRatio;
    rows['ewc_forgetting_ratio'] = {
      value: ratio.toFixed(2),
      interval: ranged(ratios, 2),
      control: `shuffled Fisher: ${controlRatio.toFixed(2)} (${ranged(controlRatios, 2)})`,
    };
  },
  async speed(_model, { figures }) {
    const times = [];
    for (const numTokens of [1, 16, 64]) times.push(await timeMicroLora(numTokens));
    printTable([
      ['instant step, hidden 2048, vocabulary 32,000', 'p50 ms', 'p99 ms'],
      ...times.map(({ numTokens, p50Ms, p99Ms }) => [`${numTokens} tokens`, p50Ms.toFixed(3), p99Ms.toFixed(3)]),
    ]);
    figures['instant_2048_p50_ms'] = times[1]!.p50Ms;
  },
};
