//! Abbreviations of time zones, those that PostgreSQL knows by itself.

use crate::style::Zone;

/// Minutes east of UTC, and who says so.
#[rustfmt::skip]
const FIXED: &[(i16, &str)] = &[
    (-600, "hst taht"),
    (-570, "mart"),
    (-540, "akst gamt"),
    (-480, "akdt pst"),
    (-420, "mst pdt"),
    (-360, "cst galt mdt"),
    (-300, "act cdt cot est pet"),
    (-240, "amt ast bot edt"),
    (-210, "nft nst"),
    (-180, "adt bra brt clst gft pmst pyst uyt wgt"),
    (-150, "ndt"),
    (-120, "brst fnt pmdt uyst wgst"),
    (-60, "azot egt fnst"),
    (0, "azost egst gmt uct ut utc wet z zulu"),
    (60, "bst cet met mez wat wetdst"),
    (120, "bdst cest cetdst eet ist mest mesz metdst sast"),
    (180, "eat eest eetdst fet idt"),
    (210, "irt"),
    (240, "msd mut ret sct"),
    (270, "aft"),
    (300, "must mvt pkt tft tjt uzt"),
    (345, "npt"),
    (360, "almt bdt btt kgst pkst uzst xjt yekst"),
    (390, "mmt"),
    (420, "almst cxt ict wast"),
    (480, "awst bnt bort cct hkt myt pht wadt"),
    (525, "acwst"),
    (540, "awsst jayt jst kst pwt ulast wdt"),
    (570, "acst cast"),
    (600, "aest chut ddut kdt ligt mpt pgt trut yapt"),
    (630, "acdt acsst cadt lhst sadt"),
    (660, "aedt aesst pont vut"),
    (720, "fjt gilt mht nzst nzt tvt wakt wft"),
    (765, "chast"),
    (780, "fjst nzdt tot"),
    (825, "chadt"),
];

/// Those that have meant different offsets in their time, and the zone that tells which.
#[rustfmt::skip]
const CHANGING: &[(&str, &str)] = &[
    ("America/Argentina/Buenos_Aires", "arst art"),
    ("America/Asuncion", "pyt"),
    ("America/Caracas", "vet"),
    ("America/Guyana", "gyt"),
    ("America/Santiago", "clt"),
    ("Antarctica/Davis", "davt"),
    ("Antarctica/Mawson", "mawt"),
    ("Asia/Anadyr", "anast anat"),
    ("Asia/Ashgabat", "tmt"),
    ("Asia/Baku", "azst azt"),
    ("Asia/Bishkek", "kgt"),
    ("Asia/Colombo", "lkt"),
    ("Asia/Irkutsk", "irkst irkt"),
    ("Asia/Kamchatka", "petst pett"),
    ("Asia/Krasnoyarsk", "krast krat"),
    ("Asia/Magadan", "magst magt"),
    ("Asia/Novosibirsk", "novst novt"),
    ("Asia/Omsk", "omsst omst"),
    ("Asia/Singapore", "sgt"),
    ("Asia/Tbilisi", "gest get"),
    ("Asia/Ulaanbaatar", "ulat"),
    ("Asia/Vladivostok", "vlast vlat"),
    ("Asia/Yakutsk", "yakst yakt"),
    ("Asia/Yekaterinburg", "yekt"),
    ("Asia/Yerevan", "amst"),
    ("Atlantic/Stanley", "fkst fkt"),
    ("Australia/Lord_Howe", "lhdt"),
    ("Europe/Moscow", "msk"),
    ("Europe/Volgograd", "volt"),
    ("Indian/Chagos", "iot"),
    ("Pacific/Easter", "easst east"),
    ("Pacific/Fakaofo", "tkt"),
    ("Pacific/Kiritimati", "lint"),
    ("Pacific/Kosrae", "kost"),
    ("Pacific/Niue", "nut"),
    ("Pacific/Rarotonga", "ckt"),
];

/// The zone that an abbreviation stands for, in upper or lower case.
pub(crate) fn zone(abbreviation: &str) -> Option<Zone> {
    let lower = abbreviation.to_lowercase();
    let is_in = |list: &str| list.split(' ').any(|known| known == lower);
    if let Some((minutes, _)) = FIXED.iter().find(|(_, list)| is_in(list)) {
        return Zone::fixed(i32::from(*minutes) * 60);
    }
    let (zone, _) = CHANGING.iter().find(|(_, list)| is_in(list))?;
    Zone::abbreviated(&abbreviation.to_uppercase(), zone)
}
