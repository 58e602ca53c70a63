"""Words of the trade, which general texts hardly use and transcripts of coding agents are full of."""

from typing import Final

from sidecar.domain.words import tokenise

_TEXT: Final = """
api app async await auth backend backup bash bin boolean branch browser bug build bundle cache call callback cd ci
class cli client clone cloud code column command comment commit compile component config configuration console
container content context controller cookie cpu crash css csv curl daemon data database debug decode default delete
dependency deploy deployment dev diff directory dns docker docs document domain download driver edit editor email
encode endpoint env environment error event exception execute export fetch field file filter fix flag folder font
format framework frontend function git github gpu grep handler hash header hook host html http https id image import
index init input insert install instance int integer interface ip item javascript job json key kubernetes label layer
lib library limit line link linux lint list load local localhost lock log login loop main make markdown memory merge
message metadata method metric migration mock mode model module mount name namespace network node npm null number
object option output package page param parameter parse parser patch path pattern pdf permission pip pipeline plugin
pod port post print process prod production profile project prompt proxy pull push py pytest python query queue read
record redirect refactor regex registry release remote remove render repo repository request reset response restart
retry return role root route router row rule run runner rust schema script sdk search secret select server service
session settings shell size snapshot socket source sql ssh ssl stack stage staging state status step storage store
stream string style sync syntax table tag target task template terminal test text thread threshold timeout timestamp
token tool type ui unit update upgrade upload url user utc uuid validate value variable version view warning web
webhook widget window worker workflow write xml yaml
"""

EVERYDAY: Final = frozenset(tokenise(_TEXT))
"""By stem."""
