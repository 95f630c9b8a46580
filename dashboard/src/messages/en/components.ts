import { formatCount, formatCountOf } from '../../format/numbers.ts';

export const components = {
  cancel: 'Cancel',
  close: 'Close',
  copied: 'Copied',
  tryAgain: 'Try again',
  actions: 'Actions',
  time: 'Time',
  slowServer: 'The server has not answered yet.',
  request: (id: string) => `request ${id}`,
  more: (count: number) => `${formatCount(count)} more`,
  moreCharacters: (count: number) => `Show ${formatCountOf(count, 'more character', 'more characters')}`,
  filesToAdd: 'Files to add',
  adding: (name: string) => `Adding ${name}`,
  unchanged: (name: string) => `${name} is unchanged.`,
  added: (name: string, numChunks: number) => `${name}: ${formatCountOf(numChunks, 'chunk')}.`,
};
