import type { Learning } from '../../runtime/learning/learning.ts';
import {
  openLearningOn,
  type OpenLearningOptions,
  openLearningWork as openWork,
  type OpenedWork,
} from '../../runtime/learning/open-learning.ts';
import { schedule } from '../../platform/node/process/schedule.ts';
import { spawnLearning } from './spawn-learning.ts';

export type { OpenLearningOptions, OpenedWork };

export const openLearningWork = (): OpenedWork => openWork(spawnLearning, schedule);

export function openNodeLearning(options: OpenLearningOptions): Learning {
  const platform = {
    ...openLearningWork(),
    schedule,
    warn: (message: string) => process.emitWarning(message, { code: 'RUVLLM_LEARNING' }),
  };
  return openLearningOn(platform, options);
}
