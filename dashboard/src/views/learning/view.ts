import type { View } from '../../app/views.ts';

export const view: View = {
  id: 'learning',
  title: 'Learning',
  icon: 'learning',
  order: 5,
  isOpenTo: ({ read }) => read,
  load: () => import('./index.tsx'),
};
