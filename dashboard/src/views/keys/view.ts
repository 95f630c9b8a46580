import type { View } from '../../app/views.ts';

export const view: View = {
  id: 'keys',
  title: 'API keys',
  icon: 'keys',
  order: 7,
  isOpenTo: ({ admin }) => admin,
  load: () => import('./index.tsx'),
};
