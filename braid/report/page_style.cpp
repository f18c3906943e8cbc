// The page's CSS and JavaScript as text. Colours are CSS variables, with one set for light and one for dark.
#include "braid/report/page_style.h"

namespace braid::report {

const char* const kPageStyle = R"css(
:root{color-scheme:light dark;
--paper:#f6f7f9;--card:#fff;--ink:#17202c;--soft:#556172;--pale:#8b96a5;--edge:#e2e6ec;--grid:#edf0f4;
--main:#2463c4;--faint:#a9c5ef;--second:#d2541b;--level:#6c7786;--mark:#2463c4;
--m0:#2463c4;--m1:#2f8f6b;--m2:#d9973a;--m3:#8a5fbf;--m4:#c2528b;--m5:#95a1b0;--m6:#3f9db3;--m7:#8a6d54;
--f:#3d6fb4;--b:#2f8f6b;--i:#86cbb0;--w:#efbd6b;--t:#c2528b;--r:#7a5fb0;--lane:#e6eaf0}
@media (prefers-color-scheme:dark){:root{
--paper:#11151b;--card:#191f28;--ink:#e6eaf0;--soft:#a3afbf;--pale:#748194;--edge:#2a323e;--grid:#232b36;
--main:#6ea3f5;--faint:#34507c;--second:#f08a4f;--level:#94a1b3;--mark:#6ea3f5;
--m0:#5b92e8;--m1:#45b58b;--m2:#e0a850;--m3:#a985db;--m4:#d872a5;--m5:#6f7c8d;--m6:#5bb5c9;--m7:#b0917a;
--f:#5486cf;--b:#3ba57e;--i:#7fc3a9;--w:#dfae5e;--t:#d0649c;--r:#9179cb;--lane:#252d38}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1180px;margin:0 auto;padding:36px 24px 64px}
header{margin-bottom:22px}
h1{font-size:27px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:19px;margin:40px 0 12px;letter-spacing:-.005em}
h3{font-size:15px;margin:0;font-weight:600}
p{margin:0 0 6px}
.lead{color:var(--soft)}
.fault{color:var(--second)}
.note{color:var(--soft);font-size:13.5px;margin:8px 0 0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(146px,1fr));gap:12px}
.tile,.chart,.panel{background:var(--card);border:1px solid var(--edge);border-radius:10px}
.tile{padding:13px 16px 12px}
.tile .name{color:var(--soft);font-size:13px}
.tile .value{font-size:23px;line-height:1.3;font-weight:600;letter-spacing:-.01em;white-space:nowrap}
.tile .value small{font-size:14px;font-weight:500;color:var(--soft);letter-spacing:0}
.tile .more{color:var(--soft);font-size:13px}
.charts{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:14px}
.chart{margin:0;padding:15px 20px 34px 16px}
.chart.whole,.chart:nth-child(even):last-child{grid-column:1/-1}
figcaption{display:flex;flex-wrap:wrap;align-items:baseline;gap:2px 10px;margin:0 0 14px;min-height:24px}
.unit{color:var(--soft);font-size:13px}
div.legend,span.legend{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:13px;color:var(--soft)}
figcaption .legend{margin-left:auto}
.legend span{display:inline-flex;align-items:center;gap:6px;white-space:nowrap}
.legend i{width:18px;height:0;border-top:2.5px solid var(--main);border-radius:2px}
.legend i.faint{border-color:var(--faint)}.legend i.second{border-color:var(--second)}
.legend i.level{border-top:2px dashed var(--level)}
.plot{position:relative;margin-left:46px;height:190px;touch-action:pan-y}
.whole .plot{height:300px}
.frame{display:block;width:100%;height:100%;overflow:visible}
.frame svg{overflow:visible}
.frame text{font-size:12px;fill:var(--pale);font-variant-numeric:tabular-nums}
.frame .y{text-anchor:end}.frame .x{text-anchor:middle}
.frame line{stroke-width:1;shape-rendering:crispEdges}
.grid{stroke:var(--grid)}.frame .axis{stroke:var(--edge)}
.frame .level{stroke:var(--level);stroke-width:1.5;stroke-dasharray:6 5}
.frame .break{stroke:var(--pale);stroke-dasharray:2 4}
.frame path{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round;vector-effect:non-scaling-stroke}
.frame path.faint{stroke:var(--faint);stroke-width:1}.frame path.main{stroke:var(--main)}
.frame path.second{stroke:var(--second)}
.frame circle{stroke:var(--card);stroke-width:1.5}
circle.main{fill:var(--main)}circle.second{fill:var(--second)}circle.faint{fill:var(--faint)}
.cross{stroke:var(--pale);visibility:hidden}
.tip{position:absolute;top:0;pointer-events:none;visibility:hidden;background:var(--card);border:1px solid var(--edge);
border-radius:7px;box-shadow:0 3px 12px rgb(0 0 0/.13);padding:6px 10px;font-size:12.5px;line-height:1.5;white-space:nowrap;
z-index:1;font-variant-numeric:tabular-nums}
.tip b{display:block;font-weight:600}
.panel{padding:14px 18px}
.wide{overflow-x:auto;padding:4px 10px 8px}
.tl{display:block;width:100%;min-width:760px;height:auto}
.tl text{fill:var(--soft)!important}.tl .title{fill:var(--ink)!important}.tl .detail{fill:var(--soft)!important}
.tl .n{fill:#fff!important}.tl .d{fill:#17202c!important}
.tl .paper{fill:none!important}.tl .lane{fill:var(--lane)!important}
.tl .grid{stroke:var(--edge)!important}
.tl .f{fill:var(--f)!important}.tl .b{fill:var(--b)!important}.tl .i{fill:var(--i)!important}
.tl .w{fill:var(--w)!important}.tl .t{fill:var(--t)!important}.tl .r{fill:var(--r)!important}
.memory .legend{margin-bottom:12px}
.memory .legend i{width:12px;height:12px;border:0;border-radius:3px}
.memory .legend i.most{width:3px;height:15px;border-radius:1px;background:var(--ink)}
.row{display:grid;grid-template-columns:62px minmax(0,1fr) 82px;gap:12px;align-items:center;margin-bottom:5px}
.who,.sum{font-size:13px;color:var(--soft);font-variant-numeric:tabular-nums;white-space:nowrap}
.who{text-align:right}
.stack{position:relative;display:flex;height:21px;background:var(--grid);border-radius:4px}
.stack i{display:block;height:100%}
.stack i:first-child{border-radius:4px 0 0 4px}
.stack b{position:absolute;top:-3px;bottom:-3px;width:3px;margin-left:-2px;border-radius:1px;background:var(--ink)}
.m0{background:var(--m0)}.m1{background:var(--m1)}.m2{background:var(--m2)}.m3{background:var(--m3)}
.m4{background:var(--m4)}.m5{background:var(--m5)}.m6{background:var(--m6)}.m7{background:var(--m7)}
.ticks{position:relative;height:18px}
.ticks span{position:absolute;transform:translateX(-50%);font-size:12px;color:var(--pale);white-space:nowrap}
.ticks span:first-child{transform:none}
.tables{columns:2;column-gap:14px}
table{border-collapse:collapse;width:100%;font-size:13.5px;break-inside:avoid;margin:0 0 14px;background:var(--card);
border-radius:10px;box-shadow:0 0 0 1px var(--edge) inset}
caption{text-align:left;font-weight:600;padding:0 0 5px 2px}
th,td{padding:4px 14px;vertical-align:baseline;border-top:1px solid var(--grid)}
tr:first-child th,tr:first-child td{border-top:0}
th{text-align:left;font-weight:400;color:var(--soft);width:44%}
td{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12.5px;overflow-wrap:anywhere}
.facts{max-width:760px}.facts th{width:30%}
.compared th,.compared td{width:auto;padding:6px 10px;vertical-align:top;overflow-wrap:normal}
.compared td{font:inherit}.compared .number{white-space:nowrap;text-align:right;font-variant-numeric:tabular-nums}
.compared th:nth-child(n+5){text-align:right}
.compared tr>th:first-child{color:var(--ink);font-weight:600;white-space:nowrap}
.changed th{color:var(--ink)}
.changed td{color:var(--mark);font-weight:600}
pre{overflow-x:auto;background:var(--card);border:1px solid var(--edge);border-radius:10px;padding:14px}
footer{color:var(--pale);font-size:13px;margin-top:36px}
@media (max-width:760px){
main{padding:22px 14px 40px}
h1{font-size:23px}
.charts{grid-template-columns:minmax(0,1fr)}
.tiles{grid-template-columns:repeat(2,minmax(0,1fr));gap:9px}
.tile{padding:10px 12px}.tile .value{font-size:19px}
.chart{padding:13px 14px 32px 8px}
.plot{height:170px}.whole .plot{height:220px}
figcaption{padding-left:6px}figcaption .legend{margin-left:0;width:100%}
.row{grid-template-columns:46px minmax(0,1fr) 66px;gap:8px}
.panel{padding:12px}
.tables{columns:1}
.numbers th,.numbers td{width:auto;padding:4px 6px}.numbers td{font-size:11px;white-space:nowrap}
.compared tr:first-child{display:none}
.compared tr,.compared th,.compared td{display:block;border:0}
.compared tr{padding:6px 2px;border-top:1px solid var(--grid)}
.compared td{display:grid;grid-template-columns:11.5em minmax(0,1fr);column-gap:12px;padding:2px 10px}
.compared td::before{content:attr(data-title);color:var(--soft);white-space:normal}
.compared .number{text-align:left}}
@media print{body{background:#fff}.tile,.chart,.panel{break-inside:avoid}}
)css";

const char* const kPageScript = R"js(
for (const plot of document.querySelectorAll('.plot')) {
  const frame = plot.querySelector('.frame'), cross = plot.querySelector('.cross');
  const tip = plot.appendChild(document.createElement('div'));
  tip.className = 'tip';
  const [x0, x1] = plot.dataset.x.split(' ').map(Number), [y0, y1] = plot.dataset.y.split(' ').map(Number);
  const value = share => plot.dataset.scale == 'log' ? y0 * Math.pow(y1 / y0, share) : y0 + (y1 - y0) * share;
  const curves = [...frame.querySelectorAll('path[data-name]')].map(path => ({name: path.dataset.name,
    points: path.getAttribute('d').slice(1).split('L').map(point => point.split(' ').map(Number))}));
  const nearest = (points, x) => {
    let low = 0, high = points.length - 1;
    while (high - low > 1) points[(low + high) >> 1][0] < x ? low = (low + high) >> 1 : high = (low + high) >> 1;
    return x - points[low][0] < points[high][0] - x ? points[low] : points[high];
  };
  const hide = () => { tip.style.visibility = cross.style.visibility = 'hidden'; };
  plot.addEventListener('pointerleave', hide);
  plot.addEventListener('pointermove', event => {
    const box = frame.getBoundingClientRect();
    const at = nearest(curves[0].points, (event.clientX - box.left) / box.width * 1000)[0];
    tip.textContent = '';
    tip.appendChild(document.createElement('b')).textContent = 'step ' + Math.round(x0 + (x1 - x0) * at / 1000);
    for (const curve of curves) {
      const found = nearest(curve.points, at);
      tip.appendChild(document.createElement('div')).textContent =
        curve.name + '  ' + Number(value(1 - found[1] / 1000).toPrecision(4));
    }
    cross.setAttribute('x1', at / 10 + '%');
    cross.setAttribute('x2', at / 10 + '%');
    tip.style.left = at < 500 ? 'calc(' + at / 10 + '% + 12px)' : 'auto';
    tip.style.right = at < 500 ? 'auto' : 'calc(' + (100 - at / 10) + '% + 12px)';
    tip.style.visibility = cross.style.visibility = 'visible';
  });
}
)js";

}  // namespace braid::report
