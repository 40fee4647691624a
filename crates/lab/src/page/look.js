addEventListener('load', () => {
  document.querySelectorAll('details').forEach(one => one.open = true);
  const found = [];
  let pictures = 0;
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    if (frame.width === 0) continue;
    pictures += 1;
    const texts = [...svg.querySelectorAll('text')].map(text => {
      return { is: text.textContent.trim(), at: text.getBoundingClientRect() };
    });
    texts.forEach((one, index) => {
      if (one.at.left < frame.left - 1 || one.at.right > frame.right + 1) {
        found.push('outside: ' + one.is);
      }
      for (const other of texts.slice(index + 1)) {
        const width = Math.min(one.at.right, other.at.right) - Math.max(one.at.left, other.at.left);
        const height = Math.min(one.at.bottom, other.at.bottom) - Math.max(one.at.top, other.at.top);
        if (width > 1 && height > 2) found.push('overlap: ' + one.is + ' / ' + other.is);
      }
    });
  }
  if (pictures === 0) found.push('no picture');
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth + 1) found.push('too wide: ' + page.scrollWidth);
  // How bright a colour is and how well two can be told apart, as the rules for accessible pages say.
  const brightness = colour => {
    const [red, green, blue] = colour.match(/[\d.]+/g).map(part => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = brightness(getComputedStyle(document.body).backgroundColor);
  for (const one of document.querySelectorAll('h1, h2, h3, p, td, th, summary, dt, dd')) {
    const ink = brightness(getComputedStyle(one).color);
    const contrast = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (contrast < 4.5) found.push('hard to read: ' + one.textContent);
  }
  const scheme = matchMedia('(prefers-color-scheme: dark)').matches && ground < 0.2 ? 'dark' : 'light';
  parent.postMessage(found.length ? found.slice(0, 9).join('; ') : 'fine, ' + scheme, '*');
});
